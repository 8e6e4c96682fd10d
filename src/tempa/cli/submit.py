"""`tempa submit`: ask for a job, get its ticket."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tempa.cli import connect, watch
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, note, print_json, wants_json
from tempa.cli.show import print_job

RequestFile = Annotated[Path, typer.Argument(metavar="FILE.json", help="The request's body; - reads stdin.")]
Key = Annotated[
    str | None,
    typer.Option("--key", help="Idempotency key: the same key and request give the same job, ever again."),
]


def submit(
    file: RequestFile,
    path: Annotated[str, typer.Option(help="The route to submit to.")] = "/v1/models/generate",
    key: Key = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job has ended.")] = False,
    as_json: Json = False,
) -> None:
    """Submit a job and print its ticket; with --wait, the job once it is completed."""
    document = read_request(file)
    with connect.open_client() as tempa:
        handle = tempa.submit(document, path, idempotency_key=key)
        again = " (known already: nothing new was enqueued)" if handle.replayed else ""
        if wait:
            note(f"{handle.id} {handle.ticket.status}{again}")
            print_job(watch.wait(tempa, handle.id), as_json)
        elif wants_json(as_json):
            print_json({**handle.ticket.model_dump(mode="json"), "replayed": handle.replayed})
        else:
            print(f"{handle.id} {handle.ticket.status}{again}")
            note(f"Wait for it: tempa jobs wait {handle.id}")


def read_request(file: Path) -> dict[str, Any]:
    """The JSON object in a file. What is wrong with it is told by line and column."""
    text = sys.stdin.read() if str(file) == "-" else _read(file)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise UsageFault(f"{file} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise UsageFault(f"{file} must hold a JSON object, the request's body.")
    return document


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageFault(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageFault(f"{file} is not UTF-8 text.") from None
