"""Receipts and journal entries as leaves of hash trees: their bytes, their order, and how they are read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.settlement.model import Part, Receipt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.settlement.ports import ReceiptPlace, SettlementStore


def receipt_place(receipt: Receipt) -> ReceiptPlace:
    """Where it lies in the chain's order: by slot, index and account.

    A node may not tell the index (then it counts as -1, before all), so signature and asset break ties.
    """
    index = -1 if receipt.index is None else receipt.index
    return receipt.slot, index, receipt.account, receipt.signature, receipt.asset


def receipt_document(receipt: Receipt) -> dict[str, Any]:
    """As JSON. Amounts as text: beyond 2**53 JSON's readers disagree on numbers."""
    return {
        "cluster": receipt.cluster,
        "signature": receipt.signature,
        "asset": receipt.asset,
        "account": receipt.account,
        "amount": str(receipt.amount),
        "slot": receipt.slot,
        "index": receipt.index,
        "block_time": receipt.block_time,
        "payer": receipt.payer,
        "references": list(receipt.references),
        "memos": list(receipt.memos),
        "parts": [
            {"amount": str(part.amount), "references": list(part.references)} for part in receipt.parts
        ],
    }


def receipt_of(document: Mapping[str, Any]) -> Receipt:
    """The receipt of a document. Raises KeyError, TypeError or ValueError for what is none."""
    parts = (Part(int(part["amount"]), tuple(part["references"])) for part in document["parts"])
    return Receipt(
        cluster=document["cluster"],
        signature=document["signature"],
        asset=document["asset"],
        account=document["account"],
        amount=int(document["amount"]),
        slot=document["slot"],
        index=document["index"],
        block_time=document["block_time"],
        payer=document["payer"],
        references=tuple(document["references"]),
        memos=tuple(document["memos"]),
        parts=tuple(parts),
    )


def receipt_leaf(receipt: Receipt) -> bytes:
    """What is hashed of it: its JSON in ASCII, names sorted, without spaces.

    Not RFC 8785: that has no form for the lone surrogates that a payer may have put into a memo.
    """
    return json.dumps(receipt_document(receipt), sort_keys=True, separators=(",", ":")).encode("ascii")


@dataclass(frozen=True, slots=True)
class ReceiptLeaves:
    """All receipts in the chain's order."""

    store: SettlementStore

    async def page(
        self, after: ReceiptPlace | None, limit: int, up_to: int
    ) -> list[tuple[ReceiptPlace, bytes]]:
        """Behind `after`."""
        found = await self.store.receipts_by_place(after, limit, up_to)
        return [(receipt_place(receipt), receipt_leaf(receipt)) for receipt in found]

    async def lowest(self, after: int, up_to: int) -> ReceiptPlace | None:
        """The place of the first of those that were posted since."""
        found = await self.store.lowest_receipt(after, up_to)
        return None if found is None else receipt_place(found)


@dataclass(frozen=True, slots=True)
class EntryLeaves:
    """The journal, by its entries' hashes. It only grows at its end."""

    store: SettlementStore

    async def page(self, after: int | None, limit: int, up_to: int) -> list[tuple[int, bytes]]:
        """Behind `after`."""
        found = await self.store.entry_hashes(after or 0, up_to, limit)
        return [(number, bytes.fromhex(text)) for number, text in found]

    async def lowest(self, after: int, up_to: int) -> int | None:
        """Entries are numbered without gaps."""
        return max(after, 0) + 1 if up_to > after else None
