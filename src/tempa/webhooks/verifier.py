"""The receiving end: is this webhook ours, unaltered and fresh?

Standard library only, but for Ed25519: `cryptography` is loaded when a `whpk_` key is given.
`clients/javascript/tempa-webhooks.mjs` is this file in JavaScript; a test holds their verdicts together.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tempa.core.signing import (
    PRIVATE_KEY_PREFIX,
    PUBLIC_KEY_PREFIX,
    any_match,
    decode_base64,
    hex_signature,
    secret_key,
    signed_bytes,
)

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
_HMAC, _ED25519 = "v1", "v1a"
_ED25519_ENTRIES_MAX = 16  # looked at: 0.1 ms each, and a header has room for hundreds
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
        secrets: The endpoint's secret (`whsec_...`) or public key (`whpk_...`), or several of
            either kind while it rotates.
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
    if any(key.startswith(PRIVATE_KEY_PREFIX) for key in keys):
        raise WebhookVerificationError("invalid_secret", "whsk_ is what signs; give the public key, whpk_.")
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
    """Accept if any secret made any entry of its own kind. In HMAC every pair is compared to the end."""
    given = _signatures(header)
    try:
        message = signed_bytes(message_id, timestamp, body)
    except UnicodeEncodeError:
        raise WebhookVerificationError("malformed_header", "webhook-id is not valid text.") from None
    by_secret = _matches_secret(message, _shared(secrets), given[_HMAC])
    by_key = _matches_key(message, _public(secrets), given[_ED25519])
    if not (by_secret or by_key):
        raise WebhookVerificationError("no_match", "No signature matches these bytes and secrets.")


def _signatures(header: str) -> dict[str, list[bytes]]:
    """The entries by version. Malformed ones and others are passed over: a good one may stand beside them."""
    pairs = [entry.partition(",") for entry in header.split(" ")]
    if not any(version and comma and value for version, comma, value in pairs):
        raise WebhookVerificationError("malformed_header", "webhook-signature has no entry like v1,<base64>.")
    found: dict[str, list[bytes]] = {_HMAC: [], _ED25519: []}
    for version, _, value in pairs:
        if version in found and (signature := decode_base64(value)):
            found[version].append(signature)
    return found


def _matches_secret(message: bytes, secrets: Sequence[str], given: Sequence[bytes]) -> bool:
    try:
        expected = [hmac.digest(secret_key(secret), message, hashlib.sha256) for secret in secrets]
    except ValueError as error:
        raise WebhookVerificationError("invalid_secret", f"{error}.") from None
    return any_match(expected, given)


def _matches_key(message: bytes, keys: Sequence[str], given: Sequence[bytes]) -> bool:
    if not keys:
        return False
    ed25519 = _load_ed25519()
    try:
        read = [ed25519.public_key(key) for key in keys]
    except ValueError as error:
        raise WebhookVerificationError("invalid_secret", f"{error}.") from None
    pairs = [(key, signature) for key in read for signature in given[:_ED25519_ENTRIES_MAX]]
    return any(ed25519.verifies(key, message, signature) for key, signature in pairs)


def _load_ed25519() -> Any:
    """Not an import atop: most receivers have an HMAC secret, and need no library for it."""
    try:
        return import_module("tempa.webhooks.ed25519")
    except ImportError:
        text = "A whpk_ key needs the package cryptography, which is not installed."
        raise WebhookVerificationError("invalid_secret", text) from None


def _shared(secrets: Sequence[str]) -> list[str]:
    """Those for HMAC. A public key is known to everybody: what it would sign is worth nothing."""
    return [secret for secret in secrets if not secret.startswith(PUBLIC_KEY_PREFIX)]


def _public(secrets: Sequence[str]) -> list[str]:
    return [secret for secret in secrets if secret.startswith(PUBLIC_KEY_PREFIX)]


def _check_hex(body: bytes, names: Mapping[str, str], secrets: Sequence[str]) -> None:
    given = [_header(names, _HEX[0]), *([names[_HEX[1]]] if _HEX[1] in names else [])]
    try:
        expected = [hex_signature(secret, body).encode() for secret in _shared(secrets)]
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
