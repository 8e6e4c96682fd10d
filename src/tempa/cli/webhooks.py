"""`tempa webhooks`: receive deliveries, and check their signatures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import connect, endpoints
from tempa.cli.exits import FAULT, INTERRUPTED, UsageFault
from tempa.cli.forward import forward
from tempa.cli.output import Json, note, print_json, print_json_line, wants_json

if TYPE_CHECKING:
    from tempa.cli.signatures import Verdict
    from tempa.testing.receiver import Received, Receiver

app = typer.Typer(help="Receive webhooks, and check their signatures.", no_args_is_help=True)
app.add_typer(endpoints.app, name="endpoints")
app.command("test")(endpoints.send_test)

Secrets = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        envvar="TEMPA_WEBHOOK_SECRET",
        help="whsec_...; several while it rotates. (default: the local server's)",
    ),
]
_ROUND_SECONDS = 3600.0


@app.command("listen")
def listen(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 picks a free one.")] = 0,
    secret: Secrets = None,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after so many deliveries.")] = None,
    forward_to: Annotated[
        str | None,
        typer.Option(metavar="URL", help="POST the account's webhooks there, signed, as they come."),
    ] = None,
    event: Annotated[
        list[str] | None, typer.Option(help="With --forward-to: which. (default: how jobs end)")
    ] = None,
    as_json: Json = False,
) -> None:
    """Receive webhooks here: print each, and whether its signatures verify. Ctrl-C ends it.

    The path of the URL says how it answers: /ok with 200, /status/503 with 503, /retry-after/429/30
    with a Retry-After of 30 s. JSON comes one delivery a line. With --forward-to nothing is received: the
    server's stream is read, for a receiver that it cannot reach.
    """
    from tempa.cli.signatures import check
    from tempa.testing.receiver import Receiver

    if forward_to is not None:
        forward(forward_to, event or (), count, as_json)
        return
    secrets = _secrets(secret)
    with Receiver(port=port) as receiver:
        note(f"Listening. Use it as webhook_url: {receiver.url('/ok')}")
        seen = 0
        try:
            while count is None or seen < count:
                for delivery in _next(receiver, seen):
                    verdict = check(delivery.body, delivery.headers, secrets)
                    _show(delivery, verdict, wants_json(as_json))
                    seen += 1
        except KeyboardInterrupt:
            raise typer.Exit(0 if count is None else INTERRUPTED) from None


@app.command("verify")
def verify(
    body: Annotated[Path, typer.Argument(metavar="BODY", help="File with the raw body; - reads stdin.")],
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="'name: value', as it came. Once for each.")
    ] = None,
    headers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of headers: a JSON object, or one a line.")
    ] = None,
    secret: Secrets = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Age allowed, in seconds; inf: any.")] = 300.0,
    as_json: Json = False,
) -> None:
    """Say whether a delivery verifies; if not, which of the known mistakes it is. Exit code 1: no."""
    from tempa.cli.signatures import check

    raw = sys.stdin.buffer.read() if str(body) == "-" else _read(body)
    given = {**(_read_headers(headers) if headers else {}), **_parse_lines(header or [])}
    verdict = check(raw, given, _secrets(secret), tolerance)
    if wants_json(as_json):
        print_json(verdict.document())
    else:
        print("\n".join(_words(verdict)))
    if not verdict.verifies:
        raise typer.Exit(FAULT)


def _next(receiver: Receiver, seen: int) -> list[Received]:
    try:
        return receiver.wait_for(seen + 1, _ROUND_SECONDS)[seen:]
    except TimeoutError:
        return []


def _show(delivery: Received, verdict: Verdict, as_json: bool) -> None:
    if as_json:
        print_json_line({"path": delivery.path, **verdict.document()})
        return
    event = verdict.event or {}
    data = event.get("data", {})
    print(f"{event.get('type', '(not verified)')}  {data.get('job_id', '')}  {data.get('status', '')}")
    print("\n".join(f"  {line}" for line in _words(verdict)), flush=True)


def _words(verdict: Verdict) -> list[str]:
    by_hex = {True: "matches", False: "does not match", None: "is not there"}[verdict.hex_matches]
    if verdict.event is not None:
        return [f"verifies: {verdict.event['id']}; X-Webhook-Signature {by_hex}"]
    return [
        f"does NOT verify ({verdict.reason}): {verdict.message}",
        f"X-Webhook-Signature {by_hex}.",
        *([verdict.hint] if verdict.hint else []),
    ]


def _secrets(given: list[str] | None) -> list[str]:
    secrets = given or [secret for secret in [connect.local_server().get("webhook_secret")] if secret]
    if not secrets:
        raise UsageFault("No secret is known: say --secret, or set TEMPA_WEBHOOK_SECRET.")
    return secrets


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageFault(f"{file} cannot be read: {error.strerror}.") from None


def _read_headers(file: Path) -> dict[str, str]:
    text = _read(file).decode("latin-1")
    if not text.lstrip().startswith("{"):
        return _parse_lines([line for line in text.splitlines() if line.strip()])
    try:
        return {str(name): str(value) for name, value in json.loads(text).items()}
    except ValueError as error:
        raise UsageFault(f"{file} is not JSON: {error}") from None


def _parse_lines(lines: list[str]) -> dict[str, str]:
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon:
            raise UsageFault(f"A header is written 'name: value'; this is {line!r}.")
        headers[name.strip()] = value.strip()
    return headers
