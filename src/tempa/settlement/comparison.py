"""Whether two ledgers are the same: receipts, balances, what each quote was granted, and the root over all.

Not compared: when something was posted, and so the journal's hashes and the ends of rentals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from tempa.settlement.leaves import ReceiptLeaves, receipt_document, receipt_place
from tempa.settlement.tree import Tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tempa.settlement.model import Receipt
    from tempa.settlement.ports import Place, SettlementStore
    from tempa.settlement.quotes import Quote

SHOWN_MAX = 1000
_PAGE = 1000
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class Unlike(NamedTuple):
    """Something in which they differ. `what`: receipt, balance, quote or root; `key`: which one."""

    what: str
    key: str
    words: str


@dataclass(kw_only=True)
class Comparison:
    """What came of it. `differences` are the first of `difference_count`."""

    receipts: int = 0
    quotes: int = 0
    root: str = ""
    other_root: str = ""
    differences: list[Unlike] = field(default_factory=list)
    difference_count: int = 0

    def differ(self, what: str, key: str, words: str) -> None:
        """Count it, and show it if there is room."""
        self.difference_count += 1
        if len(self.differences) < SHOWN_MAX:
            self.differences.append(Unlike(what, key, words))


async def compare(one: SettlementStore, other: SettlementStore) -> Comparison:
    """`one` is called the ledger, `other` what was built anew. In pages: memory for one of each."""
    found = Comparison()
    await _compare_receipts(one, other, found)
    await _compare_balances(one, other, found)
    await _compare_quotes(one, other, found)
    found.root, found.other_root = await _root(one), await _root(other)
    if found.root != found.other_root:
        found.differ("root", "", f"it is {found.root} in the ledger, and {found.other_root} built anew")
    return found


async def all_receipts(store: SettlementStore) -> AsyncIterator[Receipt]:
    """In the chain's order, as they are now."""
    up_to = (await store.ledger_ends()).receipt
    after = None
    while page := await store.receipts_by_place(after, _PAGE, up_to):
        for receipt in page:
            yield receipt
        after = receipt_place(page[-1])


async def all_quotes(store: SettlementStore) -> AsyncIterator[Quote]:
    """In the order of their end."""
    after: Place | None = None
    while True:
        page, after = await store.watched_quotes(_BEGINNING, after, _PAGE)
        for quote in page:
            yield quote
        if after is None:
            return


async def _root(store: SettlementStore) -> str:
    root, _ = await Tree(ReceiptLeaves(store)).root((await store.ledger_ends()).receipt)
    return root.hex()


async def _compare_receipts(one: SettlementStore, other: SettlementStore, found: Comparison) -> None:
    """Both in one order, side by side; the key is what a receipt is unique by."""
    theirs = all_receipts(other)
    right = await anext(theirs, None)
    async for left in all_receipts(one):
        found.receipts += 1
        while right is not None and receipt_place(right) < receipt_place(left):
            found.differ("receipt", right.signature, "the chain has it, and the ledger does not")
            right = await anext(theirs, None)
        if right is None or receipt_place(right) != receipt_place(left):
            found.differ("receipt", left.signature, "the ledger has it, and the chain does not")
            continue
        if left != right:
            found.differ("receipt", left.signature, _unlike(left, right))
        right = await anext(theirs, None)
    while right is not None:
        found.differ("receipt", right.signature, "the chain has it, and the ledger does not")
        right = await anext(theirs, None)


def _unlike(left: Receipt, right: Receipt) -> str:
    ours, theirs = receipt_document(left), receipt_document(right)
    unlike = [
        f"{name} is {ours[name]} in the ledger, and {theirs[name]} on the chain"
        for name in ours
        if ours[name] != theirs[name]
    ]
    return "; ".join(unlike)


async def _compare_balances(one: SettlementStore, other: SettlementStore, found: Comparison) -> None:
    ours, theirs = await one.balances(), await other.balances()
    for key in sorted(ours.keys() | theirs.keys()):
        left, right = ours.get(key, 0), theirs.get(key, 0)
        if left != right:
            found.differ("balance", " ".join(key), f"{left} in the ledger, and {right} built anew")


async def _compare_quotes(one: SettlementStore, other: SettlementStore, found: Comparison) -> None:
    async for quote in all_quotes(one):
        found.quotes += 1
        offer = quote.offer
        again = await other.quote(offer.account, offer.id)
        if again is None:
            found.differ("quote", offer.id, "it is not there")
            continue
        if (quote.granted_seconds, quote.paid) != (again.granted_seconds, again.paid):
            words = (
                f"{quote.paid} were credited for {quote.granted_seconds} s in the ledger, "
                f"and {again.paid} for {again.granted_seconds} s built anew"
            )
            found.differ("quote", offer.id, words)
