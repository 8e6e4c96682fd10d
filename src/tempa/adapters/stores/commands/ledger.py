"""Posting: receipts, allocations, journal, rentals, quotes and events of many transactions in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.batches import Batches
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.posting import Book, known_quotes, place_of
from tempa.adapters.stores.sql import encode
from tempa.adapters.stores.sql.ledger_rows import (
    entries_from,
    flows_from,
    limbs,
    line_from,
    outflow_row,
    quote_payment_from,
    receipt_from,
    receipt_row,
    recorded_from,
)
from tempa.core.crash import crash_point
from tempa.core.work import EVENTS
from tempa.settlement.anomalies import lookup_key, of_outcome, of_strays, stray_key
from tempa.settlement.inbox import InboxState
from tempa.settlement.journal import Draft
from tempa.settlement.post import LedgerEnds, Posted, outflow_key, outflow_postings, receipt_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.journal import JournalEntry
    from tempa.settlement.model import Outflow, Receipt
    from tempa.settlement.ports import ReceiptPlace
    from tempa.settlement.post import Flows, LedgerLine, Proven, QuotePayment, Recorded


class LedgerPart(Access):
    """`SettlementStore`: the ledger. An adapter that closes waits for `_postings` first."""

    def __init__(self) -> None:
        super().__init__()
        self._postings: Batches[Proven, Posted] = Batches(
            self._post_all, lambda proven: proven.verdict.signature
        )

    async def post_credits(self, proven: Proven) -> Posted:
        """Write what one transaction did to the treasury, once, with all that follows from it."""
        return await self._postings.do(proven)

    async def _post_all(self, batch: Sequence[Proven]) -> list[Posted]:
        return await self._write(post_all, batch)

    async def receipts_of(self, signature: str) -> list[Recorded]:
        """All that one transaction paid, and where it is."""
        return await self._read(_receipts_of, signature)

    async def receipts(self, after: int, limit: int) -> list[Recorded]:
        """All, in the order in which they were posted, behind number `after`."""
        return await self._read(_receipts, after, limit)

    async def ledger(self, account: str | None, after: int, limit: int) -> list[LedgerLine]:
        """What was credited to an account, or to anybody, oldest first, behind number `after`."""
        return await self._read(_ledger, account, after, limit)

    async def journal(self, after: int, limit: int) -> list[JournalEntry]:
        """A piece of the chain, behind number `after`."""
        return await self._read(_journal, after, limit)

    async def entry_of(self, receipt: Receipt) -> JournalEntry | None:
        """The entry that tells of a receipt."""
        return await self._read(_entry_of, receipt_key(receipt))

    async def ledger_ends(self) -> LedgerEnds:
        """How far the ledger goes. What is numbered up to there never changes."""
        return await self._read(_ledger_ends)

    async def receipts_by_place(self, after: ReceiptPlace | None, limit: int, up_to: int) -> list[Receipt]:
        """In the chain's order, behind `after`, of those numbered up to `up_to`."""
        return await self._read(_receipts_by_place, after, limit, up_to)

    async def lowest_receipt(self, after: int, up_to: int) -> Receipt | None:
        """The first in the chain's order of those numbered above `after`, up to `up_to`."""
        return await self._read(_lowest_receipt, after, up_to)

    async def entry_hashes(self, after: int, up_to: int, limit: int) -> list[tuple[int, str]]:
        """Numbers and hashes of the journal, behind `after`."""
        return await self._read(_entry_hashes, after, up_to, limit)

    async def entries(self, keys: Sequence[str]) -> list[JournalEntry]:
        """Those of the journal that tell of these, in order."""
        return await self._read(_entries, keys)

    async def payments_of_quote(self, quote_id: str, after: int, limit: int) -> list[QuotePayment]:
        """What was given to a quote, in order, behind number `after`."""
        return await self._read(_payments_of_quote, quote_id, after, limit)

    async def flows(self, up_to: int | None = None) -> dict[tuple[str, str], Flows]:
        """What came into each account of the treasury and what left it, up to a slot, by (asset, account)."""
        return await self._read(_flows, up_to)

    async def balances(self) -> dict[tuple[str, str], int]:
        """Debits less credits of each account of the journal, by (account, asset)."""
        return await self._read(_balances)


def post_all(batch: Sequence[Proven]) -> Flow[Done[list[Posted]]]:
    """All of it or nothing, in the chain's order: who paid first gets what there is."""
    yield ASK.lock_ledger()
    moment = yield MOMENT
    book = Book(moment.now)
    rows = [receipt_row(receipt, one.evidence, book.now) for one, receipt in _in_order(batch)]
    fresh = {_key(row): row["number"] for row in (yield ASK.insert_receipts(rows))}
    new = [(one, receipt) for one, receipt in _in_order(batch) if place_of(receipt) in fresh]
    book.know((yield from known_quotes([receipt for _, receipt in new])))
    counts = {id(one): Posted() for one in batch}
    for one, receipt in new:
        posted = yield from book.post(receipt, fresh[place_of(receipt)], one.terms)
        counts[id(one)] = _sum(counts[id(one)], posted)
    yield from _post_outflows(book, batch)
    refunds = yield from _refunds_among(batch)
    for one in batch:
        counts[id(one)] = _sum(counts[id(one)], Posted(suspended=len(one.verdict.strays)))
        book.anomalies += of_strays(one.verdict)
        if one.verdict.signature not in refunds:
            book.anomalies += of_outcome(one.verdict)
    yield from book.write()
    yield from _settle(batch, book.now)
    crash_point("posting.in_commit")
    return Done([counts[id(one)] for one in batch], (EVENTS,) if book.notices else ())


def _in_order(batch: Sequence[Proven]) -> list[tuple[Proven, Receipt]]:
    pairs = [(one, receipt) for one in batch for receipt in one.verdict.receipts]
    return sorted(pairs, key=lambda pair: _chain_place(pair[1]))


def _chain_place(receipt: Receipt) -> tuple[int, int, str, str]:
    """A node that does not tell the place in the block leaves it to the signature: any order, but one."""
    index = -1 if receipt.index is None else receipt.index
    return receipt.slot, index, receipt.signature, receipt.account


def _key(row: Any) -> tuple[str, str, str, str]:
    return row["cluster"], row["signature"], row["asset"], row["account"]


def _sum(first: Posted, second: Posted) -> Posted:
    return Posted(*(one + other for one, other in zip(first, second, strict=True)))


def _post_outflows(book: Book, batch: Iterable[Proven]) -> Flow[None]:
    outflows = {outflow_key(outflow): outflow for one in batch for outflow in one.verdict.outflows}
    rows = yield ASK.insert_outflows([outflow_row(outflow, book.now) for outflow in outflows.values()])
    fresh = {(*_key(row), row["kind"]) for row in rows}
    for key, outflow in outflows.items():
        if (*place_of(outflow), outflow.kind) in fresh:
            book.drafts.append(_outflow_draft(key, outflow, book.now))


def _refunds_among(batch: Iterable[Proven]) -> Flow[set[str]]:
    """Signatures of our own refunds: that they take money out of the treasury is nothing to look at."""
    leaving = [one.verdict.signature for one in batch if one.verdict.outflows]
    if not leaving:
        return set()
    return {row["signature"] for row in (yield ASK.refund_signatures(signatures=encode(leaving)))}


def _outflow_draft(key: str, outflow: Outflow, now: int) -> Draft:
    detail = {"signature": outflow.signature, "slot": outflow.slot, "account": outflow.account}
    return Draft(
        kind="outflow",
        key=key,
        at_ms=now,
        postings=outflow_postings(outflow),
        detail={**detail, "kind": outflow.kind},
    )


def _settle(batch: Sequence[Proven], now: int) -> Flow[None]:
    """The inbox is done with them, and what was noted while they could not be seen is cleared."""
    yield ASK.settle_inbox([_settled_row(one, now) for one in batch])
    keys = [key for one in batch if one.verdict.receipts for key in _cleared(one)]
    if keys:
        yield ASK.clear_anomalies(keys=encode(keys), now=now)


def _settled_row(one: Proven, now: int) -> dict[str, Any]:
    credited = bool(one.verdict.receipts)
    return {
        "signature": one.verdict.signature,
        "state": InboxState.CREDITED if credited else InboxState.TERMINAL,
        "reason": None if credited else one.verdict.reason,
        "spent": 0,
        "next_at": None,
        "settled_at": now,
    }


def _cleared(one: Proven) -> Iterator[str]:
    yield lookup_key(one.verdict.signature)
    for receipt in one.verdict.receipts:
        yield stray_key(receipt.signature, receipt.asset, receipt.account)


def _receipts_of(signature: str) -> Flow[list[Recorded]]:
    return (yield from _recorded((yield ASK.receipts_of(signature=signature))))


def _receipts(after: int, limit: int) -> Flow[list[Recorded]]:
    return (yield from _recorded((yield ASK.receipts_after(after=after, limit=limit))))


def _recorded(rows: Sequence[Any]) -> Flow[list[Recorded]]:
    allocations = yield ASK.allocations_of(receipts=encode([row["number"] for row in rows]))
    return [recorded_from(row, allocations) for row in rows]


def _ledger(account: str | None, after: int, limit: int) -> Flow[list[LedgerLine]]:
    rows = yield ASK.allocations_after(account=account, after=after, limit=limit)
    return [line_from(row) for row in rows]


def _journal(after: int, limit: int) -> Flow[list[JournalEntry]]:
    rows = yield ASK.entries_after(after=after, limit=limit)
    if not rows:
        return []
    lines = yield ASK.postings_between(first=rows[0]["number"], last=rows[-1]["number"])
    return entries_from(rows, lines)


def _entry_of(key: str) -> Flow[JournalEntry | None]:
    row = yield ASK.entry_of(key=key)
    if row is None:
        return None
    lines = yield ASK.postings_between(first=row["number"], last=row["number"])
    return entries_from([row], lines)[0]


def _ledger_ends() -> Flow[LedgerEnds]:
    row = yield ASK.ledger_ends()
    return LedgerEnds(row["receipt_number"], row["entry_number"])


def _receipts_by_place(after: ReceiptPlace | None, limit: int, up_to: int) -> Flow[list[Receipt]]:
    if after is None:
        rows = yield ASK.first_receipts(up_to=up_to, limit=limit)
    else:
        names = ("slot", "tx_index", "account", "signature", "asset")
        place = dict(zip(names, after, strict=True))
        rows = yield ASK.receipts_by_place(**place, up_to=up_to, limit=limit)
    return [receipt_from(row) for row in rows]


def _lowest_receipt(after: int, up_to: int) -> Flow[Receipt | None]:
    row = yield ASK.lowest_receipt(after=after, up_to=up_to)
    return None if row is None else receipt_from(row)


def _entry_hashes(after: int, up_to: int, limit: int) -> Flow[list[tuple[int, str]]]:
    rows = yield ASK.entry_hashes(after=after, up_to=up_to, limit=limit)
    return [(row["number"], row["hash"]) for row in rows]


def _entries(keys: Sequence[str]) -> Flow[list[JournalEntry]]:
    rows = yield ASK.entries_by_key(keys=encode(keys))
    lines = yield ASK.postings_of(numbers=encode([row["number"] for row in rows]))
    return entries_from(rows, lines)


def _payments_of_quote(quote_id: str, after: int, limit: int) -> Flow[list[QuotePayment]]:
    rows = yield ASK.payments_of_quote(quote_id=quote_id, after=after, limit=limit)
    return [quote_payment_from(row) for row in rows]


def _flows(up_to: int | None) -> Flow[dict[tuple[str, str], Flows]]:
    received = yield ASK.received(up_to=up_to)
    sent = yield ASK.sent(up_to=up_to)
    return flows_from(received, sent)


def _balances() -> Flow[dict[tuple[str, str], int]]:
    rows = yield ASK.balances()
    return {(row["account"], row["asset"]): limbs(row) for row in rows}
