"""`tempa submit`: ask for a job, get its ticket."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tempa.cli import connect, watch
from tempa.cli.exits import UsageFault
from tempa.cli.output import Json, note, print_json, sent, wants_json
from tempa.cli.show import print_job

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY_PATTERN = re.compile(r"(?=.*\S)[\x20-\x7e]{1,255}")  # of blanks alone a header keeps nothing


def _check_key(key: str | None) -> str | None:
    """What the server would refuse, and what no HTTP header can carry to it."""
    if key is not None and _KEY_PATTERN.fullmatch(key) is None:
        raise UsageFault(f"--key must be 1 to 255 printable ASCII characters; this is {key[:80]!r}.")
    return key


RequestFile = Annotated[Path, typer.Argument(metavar="FILE.json", help="The request's body; - reads stdin.")]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        callback=_check_key,
        help="Idempotency key: the same key and request give the same job, until a day after its end.",
    ),
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
            print_json({**sent(handle.ticket), "replayed": handle.replayed})
        else:
            print(f"{handle.id} {handle.ticket.status}{again}")
            note(f"Wait for it: tempa jobs wait {handle.id}")


def read_request(file: Path) -> dict[str, Any]:
    """The JSON object in a file, read as strictly as the server does. Raises UsageFault."""
    from tempa.core.canonical import read_json
    from tempa.core.errors import Refusal

    name = "stdin" if str(file) == "-" else str(file)
    body = sys.stdin.buffer.read() if str(file) == "-" else _read(file)
    try:
        document = read_json(body)
    except Refusal as refusal:
        raise UsageFault(f"{name} is no request. {refusal.detail}") from None
    if not isinstance(document, dict):
        raise UsageFault(f"{name} must hold a JSON object, the request's body.")
    if pointer := next(_infinities(document), None):
        raise UsageFault(f"{name} is no request. {pointer}: this number is too large to be one.")
    return document


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageFault(f"{file} cannot be read: {error.strerror}.") from None


def _infinities(value: Any, pointer: str = "") -> Iterator[str]:
    """Where `1e999` stands: valid JSON, but it cannot be written again for sending."""
    if isinstance(value, float) and value in {float("inf"), float("-inf")}:
        yield pointer
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _infinities(part, f"{pointer}/{name}")
