"""`tempa webhooks`: receive deliveries, and check their signatures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempa.cli import endpoints
from tempa.cli.doctor_webhooks import doctor
from tempa.cli.exits import FAULT, INTERRUPTED, UsageFault
from tempa.cli.forward import forward
from tempa.cli.output import Json, note, print_json, print_json_line, wants_json
from tempa.cli.simulate import simulate
from tempa.cli.webhook_secrets import Secrets, known_secrets

if TYPE_CHECKING:
    from tempa.cli.signatures import Verdict
    from tempa.testing.receiver import Received, Receiver

app = typer.Typer(help="Receive webhooks, and check their signatures.", no_args_is_help=True)
app.command("doctor")(doctor)
app.command("simulate")(simulate)
app.add_typer(endpoints.app, name="endpoints")
app.command("test")(endpoints.send_test)

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
    secrets = known_secrets(secret)
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
    computed: Annotated[
        str | None, typer.Option(metavar="SIGNATURE", help="One that your own code made of this delivery.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say whether a delivery verifies; if not, which of the known mistakes it is. Exit code 1: no.

    With --computed it is your own signature that is looked at: is it right, and if not, why?
    """
    from tempa.cli.signatures import check

    raw = sys.stdin.buffer.read() if str(body) == "-" else _read(body)
    given = {**(_read_headers(headers) if headers else {}), **_parse_lines(header or [])}
    if computed is not None:
        _explain(computed, raw, given, known_secrets(secret), as_json)
        return
    verdict = check(raw, given, known_secrets(secret), tolerance)
    if wants_json(as_json):
        print_json(verdict.document())
    else:
        print("\n".join(_words(verdict)))
    if not verdict.verifies:
        raise typer.Exit(FAULT)


def _explain(computed: str, body: bytes, headers: dict[str, str], secrets: list[str], as_json: bool) -> None:
    from tempa.cli.signatures import explain

    right, words = explain(computed, body, headers, secrets)
    if wants_json(as_json):
        print_json({"right": right, "words": words})
    else:
        print("\n".join(words))
    if not right:
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
    print("  ".join((event.get("type", "(not verified)"), *_about(event.get("data")))))
    print("\n".join(f"  {line}" for line in _words(verdict)), flush=True)


def _about(data: object) -> list[str]:
    """A job and its status; else the endpoint that is told of."""
    if not isinstance(data, dict):
        return []
    told = [data.get("job_id"), data.get("status")] if data.get("job_id") else [data.get("endpoint_id")]
    return [str(each) for each in told if each]


def _words(verdict: Verdict) -> list[str]:
    by_hex = {True: "matches", False: "does not match", None: "is not there"}[verdict.hex_matches]
    if verdict.event is not None:
        hints = [verdict.hint] if verdict.hint else []
        return [f"verifies: {verdict.event['id']}; X-Webhook-Signature {by_hex}", *hints]
    return [
        f"does NOT verify ({verdict.reason}): {verdict.message}",
        f"X-Webhook-Signature {by_hex}.",
        *([verdict.hint] if verdict.hint else []),
    ]


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
