"""Ed25519 signatures of webhooks: who receives them can check, and cannot forge.

Keys are spelled as in Standard Webhooks 1.0.0: `whsk_` and the base64 of the 32-byte seed (RFC 8032)
signs, `whpk_` and the base64 of the 32-byte public key verifies.
"""

from __future__ import annotations

import base64

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tempa.core.signing import PRIVATE_KEY_PREFIX, PUBLIC_KEY_PREFIX, decode_base64

_KEY_BYTES = 32


def new_private_key() -> str:
    """A new signing key, `whsk_...`."""
    return private_key_of(Ed25519PrivateKey.generate().private_bytes_raw())


def private_key_of(seed: bytes) -> str:
    """The signing key with this 32-byte seed."""
    assert len(seed) == _KEY_BYTES, "a seed has 32 bytes"
    return PRIVATE_KEY_PREFIX + base64.b64encode(seed).decode()


def public_key_of(private_key: str) -> str:
    """The `whpk_...` that verifies what this `whsk_...` signs. Raises ValueError if it is none."""
    key = _private(private_key).public_key().public_bytes_raw()
    return PUBLIC_KEY_PREFIX + base64.b64encode(key).decode()


def sign(private_key: str, message: bytes) -> bytes:
    """64 bytes. Raises ValueError if the key is none."""
    return _private(private_key).sign(message)


def public_key(text: str) -> Ed25519PublicKey:
    """The key in a `whpk_...`. Raises ValueError if it is none."""
    try:
        return Ed25519PublicKey.from_public_bytes(_key_bytes(text, PUBLIC_KEY_PREFIX))
    except UnsupportedAlgorithm:  # an OpenSSL in FIPS mode
        raise ValueError("this machine's OpenSSL has no Ed25519") from None


def verifies(key: Ed25519PublicKey, message: bytes, signature: bytes) -> bool:
    """Whether the key's other half signed this. All that goes in is public: its time tells nothing."""
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _private(private_key: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_key_bytes(private_key, PRIVATE_KEY_PREFIX))


def _key_bytes(text: str, prefix: str) -> bytes:
    key = decode_base64(text.removeprefix(prefix))
    if not text.startswith(prefix) or key is None or len(key) != _KEY_BYTES:
        raise ValueError(f"an Ed25519 key is {prefix} and the base64 of {_KEY_BYTES} bytes")
    return key
