"""`tempa keys`: API keys, made and revoked in the store itself. Needs no key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli.exits import FAULT, UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.own_store import check_account_name, in_store, open_own
from tempa.cli.show import stamp
from tempa.cli.table import print_table
from tempa.cli.up import Config, Data

if TYPE_CHECKING:
    from tempa.core.accounts import ApiKey

app = typer.Typer(
    help="API keys, in the store itself: on SQLite with the server stopped. (While it runs: POST /v1/keys.)",
    no_args_is_help=True,
)


OfAccount = Annotated[str, typer.Option("--account", metavar="NAME", help="Whose: `tempa accounts ls`.")]


@app.command("ls")
def list_keys(
    account: OfAccount = "default", data: Data = None, config: Config = None, as_json: Json = False
) -> None:
    """List an account's keys; secrets are stored nowhere."""
    keys = in_store(_list(data, config, account))
    if wants_json(as_json):
        print_json({"items": [_document(key) for key in keys]})
        return
    rows = [
        (
            key.id,
            key.name,
            key.hint + "...",
            stamp(key.created_at),
            stamp(key.last_used_at),
            stamp(key.revoked_at),
            ", ".join(key.scopes),
        )
        for key in keys
    ]
    print_table(("id", "name", "key", "made", "last used", "revoked", "scopes"), rows, "There are no keys.")


@app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="May be given several times. (default: jobs:write, jobs:read)"),
    ] = None,
    account: OfAccount = "default",
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown this once. An account comes into being with its first."""
    scopes = tuple(dict.fromkeys(scope or ("jobs:write", "jobs:read")))
    _check_scopes(scopes)
    check_account_name(account)
    key, secret, signing_secret = in_store(_create(data, config, account, name, scopes))
    if wants_json(as_json):
        print_json({**_document(key), "api_key": secret, "webhook_secret": signing_secret})
    else:
        print(secret)
        note(f"{key.id} of the account {account}, for {', '.join(scopes)}. It is not shown again.")


@app.command("revoke")
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="From `tempa keys ls`.")],
    account: OfAccount = "default",
    data: Data = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """End a key, for good."""
    if not in_store(_revoke(data, config, account, key_id)):
        note(f"There is no key {key_id} in the account {account}. `tempa keys ls` lists them.")
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


async def _list(data: Path | None, config: Path | None, account: str) -> list[ApiKey]:
    async with open_own(data, config) as own:
        return list(await own.store.keys(account))


async def _create(
    data: Path | None, config: Path | None, account: str, name: str, scopes: tuple[str, ...]
) -> tuple[ApiKey, str, str]:
    from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
    from tempa.core.clock import SystemClock
    from tempa.core.ids import new_id

    secret = new_secret_key()
    key = ApiKey(
        id=new_id("key"),
        account=account,
        name=name,
        hint=hint(secret),
        digest=digest(secret),
        scopes=scopes,
        created_at=SystemClock().now(),
    )
    async with open_own(data, config, make=True) as own:
        await own.store.add_key(key)
        return key, secret, own.credentials.signing_secret(account)


async def _revoke(data: Path | None, config: Path | None, account: str, key_id: str) -> bool:
    async with open_own(data, config) as own:
        return await own.store.revoke_key(account, key_id)


def _document(key: ApiKey) -> dict[str, object]:
    from tempa.core.clock import rfc3339

    revoked = rfc3339(key.revoked_at) if key.revoked_at else None
    used = rfc3339(key.last_used_at) if key.last_used_at else None
    return {
        "id": key.id,
        "account": key.account,
        "name": key.name,
        "hint": key.hint,
        "scopes": list(key.scopes),
        "created_at": rfc3339(key.created_at),
        "last_used_at": used,
        "revoked_at": revoked,
    }
