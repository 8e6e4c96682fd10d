"""Helius webhooks, raw and enhanced: a list of transactions, with a secret of ours in `Authorization`.

The body is not signed; whoever knows the secret can post anything. It costs a look at the chain, no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.settlement.ingress import Call, Heard, NotAuthentic, entries, is_one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Helius:
    """`tempa.settlement.ingress.Source`."""

    name = "helius"
    has_single_use_nonces = False

    def check(self, call: Call, secrets: Sequence[str]) -> str | None:
        """The header is the secret as it was registered, or `Bearer` and the secret. There is no nonce."""
        given = call.headers.get("authorization", "").strip()
        if not given:
            raise NotAuthentic("no Authorization header")
        bare = given.removeprefix("Bearer ").strip()
        if not (is_one_of(given, secrets) | is_one_of(bare, secrets)):
            raise NotAuthentic("wrong secret")
        return None

    def hear(self, document: Any) -> Heard:
        """Enhanced entries have `signature`, raw ones `transaction.signatures`."""
        return entries(document, _signatures)


def _signatures(entry: Any) -> Iterator[Any]:
    if not isinstance(entry, dict):
        return
    if "signature" in entry:
        yield entry["signature"]
        return
    transaction = entry.get("transaction")
    signatures = transaction.get("signatures") if isinstance(transaction, dict) else None
    if isinstance(signatures, list) and signatures:
        yield signatures[0]
