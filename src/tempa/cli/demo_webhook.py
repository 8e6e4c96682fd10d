"""The demo's webhooks: each has to come, and to verify in every way there is."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.cli.demo_console import expect, tell
from tempa.cli.exits import CommandFault

if TYPE_CHECKING:
    from rich.console import Console

    from tempa.testing.receiver import Received, Receiver

_WEBHOOK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """What must have come to which path, and where it is put."""

    path: str
    secret: str
    event: str
    file: Path


def check_webhook(
    receiver: Receiver, expected: Webhook, about: tuple[str, str], console: Console
) -> dict[str, Any]:
    """The event's data, once it has come. `about`: a member of them and what it must say.

    Raises CommandFault if none comes, or it is not what was expected.
    """
    try:
        (delivery,) = receiver.wait_for(1, _WEBHOOK_SECONDS, expected.path)
    except TimeoutError:
        raise CommandFault(f"No webhook came within {_WEBHOOK_SECONDS:g} s.") from None
    expected.file.write_bytes(delivery.body)
    event = json.loads(delivery.body)
    name, value = about
    data: dict[str, Any] = event["data"]
    expect(data.get(name) == value, f"the webhook is of another {name}: {data.get(name)}")
    expect(event["type"] == expected.event, f"the webhook says {event['type']}")
    ways = verified_by(delivery, expected.secret)
    tell(console, "Webhook", f"{event['type']}, verified by {', '.join(ways)}")
    return data


def verified_by(delivery: Received, secret: str) -> list[str]:
    """Three independent readings of the same signature headers. Raises CommandFault."""
    from tempa.webhooks import WebhookVerificationError, verify

    try:
        verify(delivery.body, delivery.headers, secret)
    except WebhookVerificationError as error:
        raise CommandFault(f"tempa.webhooks.verify refuses the webhook: {error}") from None
    plain = hmac.new(secret.encode("utf-8"), delivery.body, hashlib.sha256).hexdigest()
    given = delivery.headers.get("x-webhook-signature", "")
    expect(hmac.compare_digest(plain, given), "X-Webhook-Signature is not the body's HMAC-SHA256 in hex")
    return ["tempa.webhooks.verify", "plain HMAC", *_verified_officially(delivery, secret)]


def _verified_officially(delivery: Received, secret: str) -> list[str]:
    try:
        import standardwebhooks
    except ImportError:  # of the extra `demo`: the proof is there for who has it
        return []
    try:
        standardwebhooks.Webhook(secret).verify(delivery.body, dict(delivery.headers))
    except standardwebhooks.WebhookVerificationError as error:
        raise CommandFault(f"the standardwebhooks library refuses the webhook: {error}") from None
    return ["the standardwebhooks library"]
