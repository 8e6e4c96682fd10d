"""QuickNode streams and webhooks: HMAC-SHA256 over nonce, timestamp and the unpacked body, in hex.

What `data` looks like is set by the customer's own filter, so it is searched through.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from tempa.settlement.ingress import (
    SIGNATURES_MAX,
    Call,
    Heard,
    NotAuthentic,
    Rejected,
    search,
    within_window,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_NONCE_LENGTH_MAX = 128


class QuickNode:
    """`tempa.settlement.ingress.Source`."""

    name = "quicknode"
    has_single_use_nonces = True

    def check(self, call: Call, secrets: Sequence[str]) -> str | None:
        """The nonce: a call that brings one that was there is a replay."""
        nonce, timestamp = call.headers.get("x-qn-nonce", ""), call.headers.get("x-qn-timestamp")
        given = call.headers.get("x-qn-signature", "").lower()
        if not nonce or len(nonce) > _NONCE_LENGTH_MAX:
            raise NotAuthentic("no nonce")
        if timestamp is None or not within_window(timestamp, call.at):
            raise NotAuthentic("outside the time window")
        signed = nonce.encode() + timestamp.encode() + call.body
        found = False
        for secret in secrets:
            made = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
            found |= hmac.compare_digest(made.encode(), given.encode("utf-8", "surrogateescape"))
        if not found:
            raise NotAuthentic("wrong signature")
        return nonce

    def hear(self, document: Any) -> Heard:
        """Every transaction's signature in `data`, whatever its filter has left of it."""
        data = document.get("data", document) if isinstance(document, dict) else document
        found = tuple(dict.fromkeys(search(data)))
        rejected: tuple[Rejected, ...] = ()
        if not found:
            rejected = (Rejected("/data", "no transaction signature in it"),)
        elif len(found) > SIGNATURES_MAX:
            rejected = (Rejected("/data", f"more than {SIGNATURES_MAX} signatures"),)
        return Heard(found[:SIGNATURES_MAX], rejected)
