"""`tempa webhooks listen --forward-to URL`: webhooks from the server's stream, POSTed to a local receiver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from tempa.cli import connect
from tempa.cli.exits import INTERRUPTED, UsageFault
from tempa.cli.output import note, print_json_line, wants_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import httpx2

    from tempa.client import StreamedWebhook

_TIMEOUT_SECONDS = 10.0  # as a server's deliveries have by default
_OWN = frozenset({"content-length", "host", "transfer-encoding", "connection"})  # of the connection, not ours


def forward(url: str, events: Sequence[str], count: int | None, as_json: bool) -> None:
    """POST each webhook to `url` as the server would, and print what it answered; Ctrl-C ends it."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageFault(f"{url} is no address to forward to: give one that begins with http://.")
    try:
        with connect.open_client() as tempa, _session() as session:
            note(f"Forwarding to {url}, signed with the account's secret. Ctrl-C ends it.")
            for webhook in _first(tempa.webhooks(events=events), count):
                _show(webhook, _post(session, url, webhook), wants_json(as_json))
    except KeyboardInterrupt:
        raise typer.Exit(0 if count is None else INTERRUPTED) from None


def _session() -> httpx2.Client:
    import httpx2

    return httpx2.Client(timeout=_TIMEOUT_SECONDS, trust_env=False)


def _first(webhooks: Iterator[StreamedWebhook], count: int | None) -> Iterator[StreamedWebhook]:
    """All of them, or so many; the stream is closed behind the last and not read any further."""
    for number, webhook in enumerate(webhooks, start=1):
        yield webhook
        if number == count:
            return


def _post(session: httpx2.Client, url: str, webhook: StreamedWebhook) -> tuple[int | None, str]:
    """The answer's status, or why there is none. Sent once: a receiver under development is at its desk."""
    import httpx2

    headers = {name: value for name, value in webhook.headers.items() if name.lower() not in _OWN}
    try:
        answer = session.post(url, content=webhook.body, headers=headers)
    except httpx2.TransportError as error:
        return None, str(error) or type(error).__name__
    return answer.status_code, ""


def _show(webhook: StreamedWebhook, answer: tuple[int | None, str], as_json: bool) -> None:
    event: dict[str, Any] = json.loads(webhook.body)
    status, error = answer
    if as_json:
        told = {"id": event["id"], "type": event["type"], "http_status": status, "error": error or None}
        print_json_line({"position": webhook.position, **told})
        return
    print(f"{event['type']}  {event['data'].get('job_id') or ''}  -> {status or error}", flush=True)
