"""Does this delivery verify; and if not, which of the known mistakes is it? Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.signing import hex_signature
from tempa.webhooks import WebhookVerificationError, verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of one delivery came to. `event` is None unless it verifies."""

    event: dict[str, Any] | None
    hex_matches: bool | None  # X-Webhook-Signature; None if the header is not there
    reason: str | None = None
    message: str | None = None
    hint: str | None = None

    @property
    def verifies(self) -> bool:
        """By the signature that also proves the time."""
        return self.event is not None

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "verifies": self.verifies,
            "hex_matches": self.hex_matches,
            "reason": self.reason,
            "message": self.message,
            "hint": self.hint,
            "event": self.event,
        }


def check(
    body: bytes, headers: Mapping[str, str], secrets: Sequence[str], tolerance_seconds: float = 300.0
) -> Verdict:
    """Verify both signatures, each by itself."""
    given = {name.lower(): value.strip() for name, value in headers.items()}.get("x-webhook-signature")
    matches = None if given is None else any(_signed(body, secret, given) for secret in secrets)
    try:
        return Verdict(verify(body, headers, list(secrets), tolerance_seconds), matches)
    except WebhookVerificationError as error:
        hint = _hint(error.reason, body, given, secrets, matches)
        return Verdict(None, matches, error.reason, error.message, hint)


def _hint(
    reason: str, body: bytes, given: str | None, secrets: Sequence[str], matches: bool | None
) -> str | None:
    """What would have made it match, tried out on the signature of the body alone."""
    if reason == "timestamp_too_old":
        return "Checking a delivery that was kept? Say --tolerance inf."
    if reason not in {"no_match", "invalid_secret"} or given is None:
        return None
    if matches:
        return "Body and secret are right: webhook-id, webhook-timestamp or webhook-signature was changed."
    for words, other_body, other_secret in _mistakes(body, secrets):
        if _signed(other_body, other_secret, given):
            return words
    return "The secret is another one, or the body was changed on its way."


def _mistakes(body: bytes, secrets: Sequence[str]) -> Iterator[tuple[str, bytes, str]]:
    for secret in secrets:
        yield "There is white space around the secret.", body, secret.strip()
        yield "The file ends in a line break that the delivery did not have.", body.rstrip(b"\r\n"), secret
        for written in _written_again(body):
            yield "The body was parsed and written again: sign and check the raw bytes.", written, secret


def _written_again(body: bytes) -> Iterator[bytes]:
    """The forms a delivery can have had before some JSON library rewrote it: ours is compact UTF-8."""
    try:
        document = json.loads(body)
    except ValueError:
        return
    yield json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    yield json.dumps(document, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


def _signed(body: bytes, secret: str, signature: str) -> bool:
    return hex_signature(secret, body) == signature.lower()
