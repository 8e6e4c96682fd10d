"""`tempa keys`: API keys, made and revoked in the store itself. Needs no key; the server must be stopped."""

from __future__ import annotations

from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.show import stamp
from tempa.cli.table import print_table
from tempa.cli.up import Config, Data, data_dir, require_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from tempa.core.accounts import ApiKey, KeyStore

T = TypeVar("T")

app = typer.Typer(
    help="API keys, in the store itself: with the server stopped. (While it runs: POST /v1/keys.)",
    no_args_is_help=True,
)


@app.command("ls")
def list_keys(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """List keys; secrets are stored nowhere."""
    keys = _run(_list(data, config))
    if wants_json(as_json):
        print_json({"items": [_document(key) for key in keys]})
        return
    rows = [
        (
            key.id,
            key.name,
            key.hint + "...",
            stamp(key.created_at),
            stamp(key.revoked_at),
            ", ".join(key.scopes),
        )
        for key in keys
    ]
    print_table(("id", "name", "key", "made", "revoked", "scopes"), rows, "There are no keys.")


@app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="May be given several times. (default: jobs:write, jobs:read)"),
    ] = None,
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown this once."""
    scopes = tuple(dict.fromkeys(scope or ("jobs:write", "jobs:read")))
    _check_scopes(scopes)
    key, secret = _run(_create(data, config, name, scopes))
    if wants_json(as_json):
        print_json({**_document(key), "api_key": secret})
    else:
        print(secret)
        note(f"{key.id}, for {', '.join(scopes)}. It is not shown again.")


@app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="From `tempa keys ls`.")],
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """End a key, for good."""
    if not _run(_revoke(data, config, key_id)):
        note(f"There is no key {key_id}. `tempa keys ls` lists them.")
        raise typer.Exit(FAULT)
    if wants_json(as_json):
        print_json({"id": key_id, "revoked": True})
    else:
        print(f"{key_id} is revoked.")


def _check_scopes(scopes: tuple[str, ...]) -> None:
    from tempa.core.accounts import SCOPES

    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        raise UsageFault(f"There is no scope {', '.join(unknown)}. There are {', '.join(SCOPES)}.")


def _run(work: Coroutine[Any, Any, T]) -> T:
    import asyncio  # 40 ms that `tempa --help` need not spend

    return asyncio.run(work)


@asynccontextmanager
async def _open_store(
    data: Path | None, config: Path | None, *, make: bool = False
) -> AsyncIterator[KeyStore]:
    """The store of a data directory, whose lock we hold meanwhile; `make`: there need not be one yet."""
    from tempa.wiring.opening import open_deployment
    from tempa.wiring.settings import load_settings

    settings, folder = load_settings(config), data_dir(data)
    if not make:
        require_store(settings, folder)
    async with open_deployment(settings, folder) as opened:
        yield opened.store


async def _list(data: Path | None, config: Path | None) -> list[ApiKey]:
    from tempa.core.accounts import DEFAULT_ACCOUNT

    async with _open_store(data, config) as store:
        return list(await store.keys(DEFAULT_ACCOUNT))


async def _create(
    data: Path | None, config: Path | None, name: str, scopes: tuple[str, ...]
) -> tuple[ApiKey, str]:
    from tempa.core.accounts import DEFAULT_ACCOUNT, ApiKey, digest, hint, new_secret_key
    from tempa.core.clock import SystemClock
    from tempa.core.ids import new_id

    secret = new_secret_key()
    key = ApiKey(
        id=new_id("key"),
        account=DEFAULT_ACCOUNT,
        name=name,
        hint=hint(secret),
        digest=digest(secret),
        scopes=scopes,
        created_at=SystemClock().now(),
    )
    async with _open_store(data, config, make=True) as store:
        await store.add_key(key)
    return key, secret


async def _revoke(data: Path | None, config: Path | None, key_id: str) -> bool:
    from tempa.core.accounts import DEFAULT_ACCOUNT

    async with _open_store(data, config) as store:
        return await store.revoke_key(DEFAULT_ACCOUNT, key_id)


def _document(key: ApiKey) -> dict[str, object]:
    from tempa.core.clock import rfc3339

    revoked = rfc3339(key.revoked_at) if key.revoked_at else None
    return {
        "id": key.id,
        "name": key.name,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "created_at": rfc3339(key.created_at),
        "revoked_at": revoked,
    }
