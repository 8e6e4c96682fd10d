"""Calls of one's own making: a Standard Webhooks signature over `{"signature"}` or `{"signatures": []}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core import base58
from tempa.core.signing import any_match, decode_base64, standard_digest
from tempa.settlement.ingress import SIGNATURES_MAX, Call, Heard, NotAuthentic, Rejected, within_window

if TYPE_CHECKING:
    from collections.abc import Sequence

_ID_LENGTH_MAX = 256


class Generic:
    """`tempa.settlement.ingress.Source`."""

    name = "generic"
    has_single_use_nonces = False

    def check(self, call: Call, secrets: Sequence[str]) -> str | None:
        """The message's id is its nonce."""
        message_id, timestamp = call.headers.get("webhook-id", ""), call.headers.get("webhook-timestamp")
        if not message_id or len(message_id) > _ID_LENGTH_MAX:
            raise NotAuthentic("no webhook-id")
        if timestamp is None or not within_window(timestamp, call.at):
            raise NotAuthentic("outside the time window")
        entries = [entry.partition(",") for entry in call.headers.get("webhook-signature", "").split()]
        given = [mac for version, _, text in entries if version == "v1" and (mac := decode_base64(text))]
        made = [standard_digest(secret, message_id, timestamp, call.body) for secret in secrets]
        if not any_match(made, given):
            raise NotAuthentic("wrong signature")
        return message_id

    def hear(self, document: Any) -> Heard:
        """Entries that are no signature are rejected by themselves."""
        if not isinstance(document, dict):
            return Heard((), (Rejected("", "not an object"),))
        listed = document.get("signatures", [])
        given = [document["signature"]] if "signature" in document else []
        given += listed if isinstance(listed, list) else [listed]
        found: dict[str, None] = {}
        rejected = [] if given else [Rejected("/signatures", "no transaction signature in it")]
        for number, signature in enumerate(given[:SIGNATURES_MAX]):
            if base58.is_signature(signature):
                found[signature] = None
            else:
                rejected.append(Rejected(f"/signatures/{number}", "not 64 bytes in base58"))
        if len(given) > SIGNATURES_MAX:
            rejected.append(Rejected("/signatures", f"more than {SIGNATURES_MAX} entries"))
        return Heard(tuple(found), tuple(rejected))
