"""`tempa run`: a job from request to files in one command, with or without a server."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect, watch
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, note
from tempa.cli.show import print_job
from tempa.cli.submit import Key, RequestFile, read_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.client import Client

app = typer.Typer(help="From request to files in one command.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the files go.")]


@app.callback()
def run() -> None:
    """From request to files in one command."""


@app.command("cad")
def run_cad(
    file: RequestFile,
    output: Folder = Path("out"),
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Make a solid model: submit, wait, download, verify, and print what was measured.

    Uses the running server; without one it starts its own for the length of the command.
    """
    document = read_request(file)
    _make_folder(output)
    with _some_server() as (tempa, stays):
        handle = tempa.submit(document, idempotency_key=key)
        note(f"{handle.id} {handle.ticket.status}")
        job = watch.wait(tempa, handle.id, stays=stays)
        files = tempa.download(job, output)
        print_job(job, as_json, files, stays=stays)


def _make_folder(folder: Path) -> None:
    """Before anything is asked for: a part that cannot be kept need not be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UsageFault(f"{folder} cannot take the files: {error.strerror}. Name another with -o.") from None


@contextmanager
def _some_server() -> Iterator[tuple[Client, bool]]:
    """The server that is named or runs here; else one of our own. And whether it stays afterwards."""
    from tempa.client import NotReachable

    stays = True
    with ExitStack() as held:
        try:
            tempa = held.enter_context(connect.open_client())
            if tempa.server.origin == "ready file" and not connect.answers(tempa.server.url):
                raise NotReachable(0, "not-reachable", "The ready file is that of a server that is gone.")
        except NotReachable:
            tempa = held.enter_context(_own_client(held))
            stays = False
        yield tempa, stays


def _own_client(held: ExitStack) -> Client:
    from tempa.cli.local_server import passing_server
    from tempa.client import Client

    note("No server runs here; one is started for this command.")
    server = held.enter_context(passing_server())
    return Client(server["url"], server["api_key"])
