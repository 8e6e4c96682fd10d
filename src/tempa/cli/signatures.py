"""Does this delivery verify; and if not, which of the known mistakes is it? Pure, but for the clock."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.cli.mistakes import Delivery, Scheme, mistakes
from tempa.core.signing import PUBLIC_KEY_PREFIX, SECRET_PREFIX, hex_signature
from tempa.webhooks import WebhookVerificationError, verify

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEX, _PREVIOUS = "x-webhook-signature", "x-webhook-signature-previous"
_OLD_ONE = "The secret is the old one: it signs too while it rotates, and then no more. Take the new one."
_STRANGE = "The secret is another one, or the body was changed on its way."
_UNKNOWN = "Nothing known gives this signature."
_PREFIX = (
    "X-Webhook-Signature is keyed with the whole secret as it was shown, whsec_ included: with the prefix it "
    "matches."
)
_HOUR_SECONDS = 3600


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
    body: bytes,
    headers: Mapping[str, str],
    secrets: Sequence[str],
    tolerance_seconds: float = 300.0,
    now: float | None = None,
) -> Verdict:
    """Verify both signatures, each by itself. `now` in Unix seconds; the system's clock if None."""
    given = {name.lower(): value.strip() for name, value in headers.items()}
    matches = _hex_matches(body, secrets, given, _HEX)
    clock = time.time() if now is None else now
    try:
        event = verify(body, headers, list(secrets), tolerance_seconds, clock)
    except WebhookVerificationError as error:
        hint = _hint(error.reason, body, given, secrets, clock)
        return Verdict(None, matches, error.reason, error.message, hint)
    is_old = not matches and _hex_matches(body, secrets, given, _PREVIOUS)
    return Verdict(event, matches, hint=_OLD_ONE if is_old else _prefix_hint(body, secrets, given, matches))


def explain(
    computed: str, body: bytes, headers: Mapping[str, str], secrets: Sequence[str]
) -> tuple[bool, list[str]]:
    """Whether a signature that somebody computed is right, and in words what it is or what went wrong.

    Without `webhook-id` and `webhook-timestamp` among the headers, only mistakes that need neither
    are found.
    """
    given = {name.lower(): value.strip() for name, value in headers.items()}
    schemes = _schemes_of(computed)
    found = mistakes(computed, _delivery(body, given), secrets, schemes)
    if found:
        return False, list(found)
    if found is None:
        return False, [_kind_hint(computed, secrets) or _unknown(given, schemes)]
    name = "X-Webhook-Signature" if schemes == ("hex",) else "webhook-signature"
    older = len(secrets) > 1 and mistakes(computed, _delivery(body, given), secrets[:1], schemes) != ()
    return True, [f"This is right, for {name}.", *([_OLD_ONE] if older else [])]


def _prefix_hint(
    body: bytes, secrets: Sequence[str], given: Mapping[str, str], matches: bool | None
) -> str | None:
    """The standard signature is over the key in a secret, the plain one over its text."""
    if matches is not False:
        return None
    whole = [SECRET_PREFIX + secret for secret in secrets if not secret.startswith(SECRET_PREFIX)]
    return _PREFIX if _hex_matches(body, whole, given, _HEX) else None


def _unknown(given: Mapping[str, str], schemes: Sequence[Scheme]) -> str:
    if "v1" in schemes and not {"webhook-id", "webhook-timestamp"} <= given.keys():
        return (
            "Nothing known gives this signature. Give webhook-id and webhook-timestamp too: it is over them."
        )
    return f"Nothing known gives this signature. {_STRANGE}"


def _schemes_of(computed: str) -> tuple[Scheme, ...]:
    """What it was meant for: by its spelling, the other one only if nothing of that is known."""
    text = computed.strip()
    if text.startswith("v1,"):
        return ("v1",)
    return ("hex",) if re.fullmatch(r"[0-9a-fA-F]{64}", text) else ("v1", "hex")


def _hint(
    reason: str, body: bytes, given: Mapping[str, str], secrets: Sequence[str], now: float
) -> str | None:
    """What would have made it verify."""
    if reason in {"timestamp_too_old", "timestamp_too_new"}:
        return _clock_hint(body, given, secrets, now)
    if reason == "malformed_header" and re.fullmatch(r"[0-9]{13}", given.get("webhook-timestamp", "")):
        return "webhook-timestamp is in milliseconds; it has to be in seconds."
    return _signature_hint(body, given, secrets) if reason in {"no_match", "invalid_secret"} else None


def _signature_hint(body: bytes, given: Mapping[str, str], secrets: Sequence[str]) -> str:
    if _hex_matches(body, secrets, given, _PREVIOUS):
        return _OLD_ONE
    found = _found(body, given, secrets)
    if found:
        return " ".join(found)
    if _hex_matches(body, secrets, given, _HEX):
        return "Body and secret are right: webhook-id, webhook-timestamp or webhook-signature was changed."
    return _kind_hint(given.get("webhook-signature", ""), secrets) or _STRANGE


def _found(body: bytes, given: Mapping[str, str], secrets: Sequence[str]) -> tuple[str, ...]:
    """The fewest mistakes that explain any of the signatures that came."""
    delivery = _delivery(body, given)
    entries = [entry for entry in given.get("webhook-signature", "").split(" ") if entry.startswith("v1,")]
    tried = [mistakes(entry, delivery, secrets, ("v1",)) for entry in entries]
    if _HEX in given:
        tried.append(mistakes(given[_HEX], delivery, secrets, ("hex",)))
    return min((words for words in tried if words), key=len, default=())


def _clock_hint(body: bytes, given: Mapping[str, str], secrets: Sequence[str], now: float) -> str:
    """How far off, which clock, and whether that is all."""
    off_seconds = now - int(given["webhook-timestamp"])
    where = "behind" if off_seconds > 0 else "ahead of"
    hours = round(off_seconds / _HOUR_SECONDS)
    zone = (
        " Whole hours: somebody took local time for UTC."
        if hours and abs(off_seconds - hours * _HOUR_SECONDS) < 60
        else ""
    )
    try:
        verify(body, given, list(secrets), float("inf"), now)
        rest = "All else is right."
    except WebhookVerificationError as error:
        rest = f"Nor does it verify otherwise ({error.reason})."
    return (
        f"The delivery's time lies {abs(off_seconds):.0f} s {where} this machine's clock.{zone} {rest} "
        "A delivery that was kept: say --tolerance inf. A fresh one: set the clock (NTP)."
    )


def _kind_hint(signature: str, secrets: Sequence[str]) -> str | None:
    """A secret of one kind, a signature of the other."""
    kinds = {entry.partition(",")[0] for entry in signature.split(" ")} & {"v1", "v1a"}
    public = [secret.startswith(PUBLIC_KEY_PREFIX) for secret in secrets]
    if kinds == {"v1a"} and not any(public):
        return "It is signed by Ed25519 (v1a): check it with the endpoint's public key, whpk_."
    if kinds == {"v1"} and all(public):
        return "It is signed by HMAC (v1): check it with the endpoint's secret, whsec_; whpk_ is for v1a."
    return None


def _delivery(body: bytes, given: Mapping[str, str]) -> Delivery:
    return Delivery(body, given.get("webhook-id"), given.get("webhook-timestamp"))


def _hex_matches(body: bytes, secrets: Sequence[str], given: Mapping[str, str], name: str) -> bool | None:
    if name not in given:
        return None
    spelt = [secret for secret in secrets if _is_text(secret)]
    return any(hex_signature(secret, body) == given[name].lower() for secret in spelt)


def _is_text(secret: str) -> bool:
    """Arguments that are not UTF-8 come with lone surrogates in them: no secret of ours has any."""
    return secret.isascii() or secret == secret.encode(errors="ignore").decode()
