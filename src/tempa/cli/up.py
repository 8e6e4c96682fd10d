"""`tempa up`: the whole server in one process."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli.exits import UsageFault
from tempa.cli.invocation import command_line, example_request
from tempa.cli.output import Json, note, print_json, unread, wants_json

if TYPE_CHECKING:
    from tempa.wiring.embedded import Ready
    from tempa.wiring.settings import Settings

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where everything is kept. (default: $XDG_DATA_HOME/tempa)"),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings in TOML, over the defaults.")
]


def up(
    host: Annotated[str | None, typer.Option(help="Address to serve at. (default: 127.0.0.1)")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="0 picks a free one. (default: 8787)")
    ] = None,
    data: Data = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Put into place, with URL and key, when requests are served."),
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Serve the API, run the jobs and send the webhooks, until Ctrl-C or SIGTERM."""
    import uvloop

    from tempa.wiring.embedded import serve
    from tempa.wiring.logs import configure
    from tempa.wiring.settings import load_settings

    given = {"server.host": host, "server.port": port}
    settings = load_settings(config, {name: value for name, value in given.items() if value is not None})
    configure(settings.log)

    def announce(ready: Ready) -> None:
        _announce(ready, as_json)

    uvloop.run(serve(settings, data_dir(data), ready_file, announce))
    if not wants_json(as_json):
        note("Stopped. Jobs that were waiting go on at the next start.")


def data_dir(given: Path | None) -> Path:
    """The data directory: as given, or where the local server keeps its own."""
    from tempa.client.discovery import default_data_dir

    return (given or default_data_dir()).expanduser().resolve()


def require_store(settings: Settings, folder: Path) -> None:
    """For commands that look at a store and must not make one. Raises UsageFault."""
    from urllib.parse import unquote

    from tempa.wiring.embedded import DATABASE_FILE

    url = settings.store.url
    file = Path(unquote(url.removeprefix("sqlite://"))) if url else folder / DATABASE_FILE
    if not (folder.is_dir() and file.is_file()):
        raise UsageFault(f"There is no store in {folder}. `tempa up` makes one; --data names another.")


def _announce(ready: Ready, as_json: bool) -> None:
    """Address and key, for whoever reads it; the signing secret stays in the files."""
    with unread():
        if wants_json(as_json):
            document = asdict(ready)
            del document["webhook_secret"]
            print_json(document)
            return
        print(f"Tempa {ready.version} serves at {ready.url}")
        print(f"  API key  {ready.api_key}")
        print(f"  data     {ready.data_dir}")
        print(f"Try it: {command_line('run', 'cad', example_request(), '-o', 'out')}        Stop: Ctrl-C")
