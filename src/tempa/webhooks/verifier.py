"""The receiving end: is this webhook ours, unaltered and fresh? Standard library only."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING, Any, Literal

from tempa.core.signing import any_match, hex_signature, standard_digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Reason = Literal[
    "missing_header",
    "malformed_header",
    "timestamp_too_old",
    "timestamp_too_new",
    "no_match",
    "invalid_secret",
    "invalid_body",
    "id_mismatch",
]

_STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")
_HEX = ("x-webhook-signature", "x-webhook-signature-previous")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")  # ASCII digits only: int() also takes "1_0" and other scripts


class WebhookVerificationError(Exception):
    """The request must not be trusted: answer 400 or 401 and stop. `reason` is one of `Reason`.

    `missing_header`, `malformed_header`: it does not look like a delivery. `timestamp_too_old`,
    `timestamp_too_new`: a replay, or a clock that is off. `no_match`: no secret signed these very
    bytes (a body that was parsed and written again does not match). `invalid_secret`: the secret
    given to `verify` is not one. `invalid_body`: signed, yet no event. `id_mismatch`: the header
    names another event than the body.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        self.reason: Reason = reason
        self.message = message
        super().__init__(f"{reason}: {message}")


def verify(
    body: bytes | bytearray | memoryview,
    headers: Mapping[str, str],
    secrets: str | Sequence[str],
    tolerance_seconds: float = 300,
    now: float | None = None,
    *,
    allow_unsigned_timestamp: bool = False,
) -> dict[str, Any]:
    """The event in a delivery, once its signature, age and id have been checked.

    Args:
        body: The raw bytes as they came, not parsed and written again.
        headers: The request's headers; names in any case.
        secrets: The endpoint's secret (`whsec_...`), or several while it rotates.
        tolerance_seconds: How far the attempt's timestamp may lie from `now`, either way. A
            receiver that drops repeated ids should remember them for twice as long.
        now: Unix seconds; the system's clock if absent.
        allow_unsigned_timestamp: Also accept a delivery whose Standard Webhooks headers are
            gone and that has `X-Webhook-Signature` alone. That signature covers the body only,
            so a captured delivery can be replayed at any time: off unless you drop repeated ids
            for good.

    Raises:
        WebhookVerificationError: whatever else came, however broken.
    """
    raw = _raw_bytes(body)
    names = _read_headers(headers)
    keys = _read_secrets(secrets)
    if allow_unsigned_timestamp and not any(name in names for name in _STANDARD):
        _check_hex(raw, names, keys)
        return _read_event(raw, None)
    message_id, timestamp, signature = (_header(names, name) for name in _STANDARD)
    _check_age(timestamp, time.time() if now is None else now, tolerance_seconds)
    _check_standard(raw, message_id, timestamp, signature, keys)
    return _read_event(raw, message_id)


def _raw_bytes(body: object) -> bytes:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise WebhookVerificationError("invalid_body", "Pass the request's raw bytes, as they came.")


def _read_headers(headers: object) -> dict[str, str]:
    """The headers that concern us, by lower-case name. Names and values may also be ASCII bytes."""
    items = getattr(headers, "items", None)
    if not callable(items):
        raise WebhookVerificationError("malformed_header", "Pass the request's headers as a mapping.")
    found: dict[str, str] = {}
    for raw_name, raw_value in items():
        name = _text(raw_name).lower()
        if name not in _STANDARD and name not in _HEX:
            continue
        if name in found:
            raise WebhookVerificationError("malformed_header", f"{name} is there twice.")
        found[name] = _text(raw_value).strip(" \t")
    return found


def _text(value: object) -> str:
    """Text as it is, bytes if they are ASCII; whatever else cannot be a header and is as good as empty."""
    if isinstance(value, bytes):
        return value.decode("ascii", errors="replace")
    return value if isinstance(value, str) else ""


def _header(names: Mapping[str, str], name: str) -> str:
    if name not in names:
        hint = " X-Webhook-Signature alone proves no time: see allow_unsigned_timestamp." * (_HEX[0] in names)
        raise WebhookVerificationError("missing_header", f"{name} is missing.{hint}")
    if not names[name]:
        raise WebhookVerificationError("malformed_header", f"{name} is empty.")
    return names[name]


def _read_secrets(secrets: object) -> tuple[str, ...]:
    keys = (secrets,) if isinstance(secrets, str) else secrets
    if not isinstance(keys, (list, tuple)) or not keys or not all(isinstance(k, str) and k for k in keys):
        raise WebhookVerificationError("invalid_secret", "Give one secret, or a list of them.")
    return tuple(keys)


def _check_age(timestamp: str, now: float, tolerance_seconds: float) -> None:
    if _TIMESTAMP.fullmatch(timestamp) is None:
        raise WebhookVerificationError("malformed_header", "webhook-timestamp is not a whole number.")
    age = now - int(timestamp)
    if age < -tolerance_seconds:
        raise WebhookVerificationError("timestamp_too_new", "The attempt's time lies ahead of this clock.")
    if not age <= tolerance_seconds:  # also when either is not a number
        raise WebhookVerificationError("timestamp_too_old", "The attempt is older than the tolerance.")


def _check_standard(
    body: bytes, message_id: str, timestamp: str, header: str, secrets: Sequence[str]
) -> None:
    """Accept if any secret made any entry. Every pair is compared, none cut short."""
    given = _signatures(header)
    try:
        expected = [standard_digest(secret, message_id, timestamp, body) for secret in secrets]
    except UnicodeEncodeError:
        raise WebhookVerificationError("malformed_header", "webhook-id is not valid text.") from None
    except ValueError as error:
        raise WebhookVerificationError("invalid_secret", f"{error}.") from None
    if not any_match(expected, given):
        raise WebhookVerificationError("no_match", "No signature matches these bytes and secrets.")


def _signatures(header: str) -> list[bytes]:
    """The v1 entries. Malformed ones and other versions are passed over: a good one may stand beside them."""
    pairs = [entry.partition(",") for entry in header.split(" ")]
    if not any(version and comma and value for version, comma, value in pairs):
        raise WebhookVerificationError("malformed_header", "webhook-signature has no entry like v1,<base64>.")
    return [found for version, _, value in pairs if version == "v1" and (found := _decoded(value))]


def _decoded(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return None


def _check_hex(body: bytes, names: Mapping[str, str], secrets: Sequence[str]) -> None:
    given = [_header(names, _HEX[0]), *([names[_HEX[1]]] if _HEX[1] in names else [])]
    try:
        expected = [hex_signature(secret, body).encode() for secret in secrets]
    except UnicodeEncodeError:
        raise WebhookVerificationError("invalid_secret", "A secret is not valid text.") from None
    if not any_match(expected, [value.lower().encode(errors="replace") for value in given]):
        raise WebhookVerificationError("no_match", "No signature matches these bytes and secrets.")


def _read_event(body: bytes, message_id: str | None) -> dict[str, Any]:
    try:
        event = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise WebhookVerificationError("invalid_body", "The body is not valid JSON.") from None
    if not isinstance(event, dict) or not isinstance(event.get("id"), str):
        raise WebhookVerificationError("invalid_body", "The body is not an event with an id.")
    if message_id is not None and event["id"] != message_id:
        raise WebhookVerificationError("id_mismatch", "webhook-id names another event than the body.")
    return event


def _refuse_constant(token: str) -> Any:
    raise ValueError(token)
