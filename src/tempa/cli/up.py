"""`tempa up`: the whole server in one process."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli.exits import UsageFault
from tempa.cli.invocation import command_line, example_request
from tempa.cli.output import Json, note, print_json, unread, wants_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tempa.wiring.server import Ready
    from tempa.wiring.settings import Settings

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where everything is kept. (default: $XDG_DATA_HOME/tempa)"),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML, over the defaults.")
]


Host = Annotated[str | None, typer.Option(help="Address to serve at. (default: 127.0.0.1)")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="0 picks a free one. (default: 8787)")]
ReadyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Put into place, with URL and key, when requests are served."),
]


def up(
    host: Host = None,
    port: Port = None,
    data: Data = None,
    ready_file: ReadyFile = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Serve the API, run the jobs and send the webhooks, until Ctrl-C or SIGTERM."""
    run_process({"server.host": host, "server.port": port}, None, data, ready_file, config, as_json)


def run_process(
    flags: Mapping[str, Any],
    roles: Collection[str] | None,
    data: Path | None,
    ready_file: Path | None,
    config: Path | None,
    as_json: bool,
    *,
    listen: bool = True,
) -> None:
    """Run these roles (None: all) until a signal. `flags`: settings given on the command line."""
    import uvloop

    from tempa.wiring.logs import configure
    from tempa.wiring.roles import ALL_ROLES
    from tempa.wiring.server import serve
    from tempa.wiring.settings import load_settings

    settings = load_settings(config, {name: value for name, value in flags.items() if value is not None})
    chosen = ALL_ROLES if roles is None else roles
    if not settings.store.shared and set(chosen) != set(ALL_ROLES):
        raise UsageFault(
            "Roles can be apart only where they share a store: set store.url to postgresql://... "
            "(TEMPA_STORE__URL). `tempa up` runs all of them on SQLite."
        )
    configure(settings.log)
    told = partial(_announce, as_json=as_json, roles=chosen)
    uvloop.run(serve(settings, data_dir(data), ready_file, told, chosen, listen=listen))
    if not wants_json(as_json):
        note("Stopped. Jobs that were waiting go on at the next start.")


def data_dir(given: Path | None) -> Path:
    """The data directory: as given, or where the local server keeps its own."""
    from tempa.client.discovery import default_data_dir

    return (given or default_data_dir()).expanduser().resolve()


def require_store(settings: Settings, folder: Path) -> None:
    """For commands that look at a store and must not make one. Raises UsageFault."""
    from tempa.wiring.deployment import database_file

    if settings.store.shared:
        return
    if not (folder.is_dir() and database_file(settings, folder).is_file()):
        raise UsageFault(f"There is no store in {folder}. `tempa up` makes one; --data names another.")


def _announce(ready: Ready, *, as_json: bool, roles: Collection[str]) -> None:
    """Address and key, for whoever reads it; the signing secret stays in the files."""
    with unread():
        if wants_json(as_json):
            document = asdict(ready)
            del document["webhook_secret"]
            if "api" not in roles:  # whoever reads a worker's output has no use for the first key
                del document["api_key"]
            print_json(document)
            return
        if "api" not in roles:
            where = f" ({ready.url}/metrics)" if ready.url else ""
            print(f"Tempa {ready.version} runs: {', '.join(roles)}{where}        Stop: Ctrl-C")
            return
        print(f"Tempa {ready.version} serves at {ready.url}")
        print(f"  API key  {ready.api_key}")
        print(f"  data     {ready.data_dir}")
        print(f"Try it: {command_line('run', 'cad', example_request(), '-o', 'out')}        Stop: Ctrl-C")
