"""Signatures by HMAC-SHA256: of webhooks, of links to files, of read-only tokens.

Webhooks signed by Ed25519 need a library, which core does without: `webhooks/ed25519` has them.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets as randomness
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    EntrySigner = Callable[[str, str, int, bytes], str]  # secret, id, timestamp, body -> "v1,..."

SECRET_PREFIX = "whsec_"  # noqa: S105 - names the kind of secret, is none
PRIVATE_KEY_PREFIX = "whsk_"  # of Ed25519: signs
PUBLIC_KEY_PREFIX = "whpk_"  # of Ed25519: verifies, and is no secret
SECRET_BYTES = 32  # Standard Webhooks wants 24 to 64

_HASH = "sha256"  # by name: given as a function, it takes half as long again
_HEX_NAMES = ("X-Webhook-Signature", "X-Webhook-Signature-Previous")
_KEY_BYTES_MIN = 16
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_SUBJECT = re.compile(r"[A-Za-z0-9_-]{1,128}")
_TOKEN = re.compile(r"([A-Za-z0-9_-]{1,128})\.([1-9][0-9]{0,14})\.([A-Za-z0-9_-]{43})")


def new_secret() -> str:
    """A new signing secret: `whsec_` and the base64 of 32 random bytes."""
    return secret_of(randomness.token_bytes(SECRET_BYTES))


def secret_of(key: bytes) -> str:
    """The signing secret with this key."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def secret_key(secret: str) -> bytes:
    """The HMAC key in a Standard Webhooks secret: what its base64 says, with or without `whsec_`.

    Raises ValueError if it is not base64 or holds no bytes.
    """
    key = decode_base64(secret.removeprefix(SECRET_PREFIX))
    if not key:
        raise ValueError("a signing secret is base64, usually behind whsec_")
    return key


def decode_base64(text: str) -> bytes | None:
    """What base64 with its padding says (RFC 4648 section 4); None if it is anything else.

    Python's own validation lets "YWJj=" pass (3.11.7): a verifier in another language would not.
    """
    return base64.b64decode(text) if _BASE64.fullmatch(text) else None


def signed_bytes(message_id: str, timestamp: int | str, body: bytes) -> bytes:
    """What a Standard Webhooks signature covers: `id.timestamp.body`."""
    return f"{message_id}.{timestamp}.".encode() + body


def standard_digest(secret: str, message_id: str, timestamp: int | str, body: bytes) -> bytes:
    """HMAC-SHA256 of `signed_bytes`, 32 bytes (Standard Webhooks 1.0.0, scheme v1)."""
    return hmac.digest(secret_key(secret), signed_bytes(message_id, timestamp, body), _HASH)


def standard_signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """One entry of a `webhook-signature` header: `v1,<base64>`."""
    return "v1," + base64.b64encode(standard_digest(secret, message_id, timestamp, body)).decode()


def hex_signature(secret: str, body: bytes) -> str:
    """HMAC-SHA256 of the body alone, in hex. The key is the UTF-8 of the whole secret, `whsec_` included."""
    return hmac.digest(secret.encode(), body, _HASH).hex()


def webhook_headers(
    secrets: Sequence[str],
    message_id: str,
    timestamp: int,
    body: bytes,
    sign: EntrySigner = standard_signature,
) -> tuple[tuple[str, str], ...]:
    """The headers that sign one attempt. `secrets` are those in force, newest first.

    `sign` makes an entry of a secret: this one knows HMAC, `webhooks.signing` Ed25519 too. The hex
    headers are there for HMAC secrets only: who has a public key checks the signature it belongs to.
    """
    assert secrets, "a delivery is never sent unsigned"
    entries = [sign(secret, message_id, timestamp, body) for secret in secrets]
    shared = [secret for secret in secrets if not secret.startswith(PRIVATE_KEY_PREFIX)]
    in_hex = ((name, hex_signature(secret, body)) for name, secret in zip(_HEX_NAMES, shared, strict=False))
    return (
        ("webhook-id", message_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(entries)),
        *in_hex,
    )


def sign_link(key: bytes, parts: Sequence[str], expires: int) -> str:
    """The signature of a link to `parts`, good until `expires` (Unix seconds): 43 URL-safe characters."""
    return _mac(key, b"link", *parts, str(expires)).decode()


def verify_link(keys: Sequence[bytes], parts: Sequence[str], expires: int, signature: str) -> bool:
    """Whether one of `keys` signed this link. Whether it has expired is the caller's to ask."""
    expected = [_mac(key, b"link", *parts, str(expires)) for key in keys]
    return any_match(expected, [signature.encode(errors="replace")])


def sign_token(key: bytes, subject: str, expires: int) -> str:
    """A token that says: its bearer may read `subject` (an id) until `expires` (Unix seconds).

    Form: `subject.expires.signature`, URL-safe; nothing in it is secret but the signature.
    """
    assert _SUBJECT.fullmatch(subject), "the subject of a token is an id"
    return f"{subject}.{expires}.{_mac(key, b'token', subject, str(expires)).decode()}"


def verify_token(keys: Sequence[bytes], token: str, now: float) -> str | None:
    """The subject of a token, or None if none of `keys` signed it or it has ended by `now` (Unix seconds)."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        return None
    subject, expires, signature = match.groups()
    expected = [_mac(key, b"token", subject, expires) for key in keys]
    return subject if any_match(expected, [signature.encode()]) and now < int(expires) else None


def any_match(expected: Sequence[bytes], given: Sequence[bytes]) -> bool:
    """Whether any pair is equal. Every pair is compared, in constant time, so that the time tells nothing."""
    matches = 0
    for one in expected:
        for other in given:
            matches += hmac.compare_digest(one, other)
    return matches > 0


def _mac(key: bytes, purpose: bytes, *parts: str) -> bytes:
    """Purpose and lengths are signed too: no token is ever a link, and ("ab", "c") is not ("a", "bc")."""
    if len(key) < _KEY_BYTES_MIN:
        raise ValueError(f"a signing key has at least {_KEY_BYTES_MIN} bytes")
    encoded = [part.encode(errors="surrogatepass") for part in parts]
    message = b"".join(b"%d:%b" % (len(part), part) for part in (purpose, *encoded))
    return base64.urlsafe_b64encode(hmac.digest(key, message, _HASH)).rstrip(b"=")
