"""The headers of an attempt, whichever kind of secret its endpoint has."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from tempa.core import signing
from tempa.core.signing import PRIVATE_KEY_PREFIX, signed_bytes, standard_signature
from tempa.webhooks.ed25519 import sign

if TYPE_CHECKING:
    from collections.abc import Sequence


def webhook_headers(
    secrets: Sequence[str], message_id: str, timestamp: int, body: bytes
) -> tuple[tuple[str, str], ...]:
    """The headers that sign one attempt, by every secret in force, newest first.

    `whsec_` secrets sign by HMAC (`v1`, and in hex besides), `whsk_` keys by Ed25519 (`v1a`). Raises
    ValueError for a secret that is neither.
    """
    return signing.webhook_headers(secrets, message_id, timestamp, body, signature_entry)


def signature_entry(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """One entry of a `webhook-signature` header: `v1,<base64>` or `v1a,<base64>`."""
    if not secret.startswith(PRIVATE_KEY_PREFIX):
        return standard_signature(secret, message_id, timestamp, body)
    signature = sign(secret, signed_bytes(message_id, timestamp, body))
    return "v1a," + base64.b64encode(signature).decode()
