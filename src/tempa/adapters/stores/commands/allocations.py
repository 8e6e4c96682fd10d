"""What a person does about an anomaly: have it tried again, give its money to a quote, or close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.anomalies import find
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.posting import Book, known_quotes
from tempa.adapters.stores.sql.ledger_rows import receipt_from
from tempa.adapters.stores.sql.settlement_rows import plain
from tempa.core.crash import crash_point
from tempa.core.work import EVENTS, INBOX
from tempa.settlement.anomalies import NO_SUCH_QUOTE, Redriven, Resolved, suspense_key
from tempa.settlement.model import QuoteStatus, Share
from tempa.settlement.post import released_status

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.model import Receipt
    from tempa.settlement.post import Terms
    from tempa.settlement.quotes import Quote


class AllocationsPart(Access):
    """`SettlementStore`: what is done about anomalies."""

    async def redrive_anomaly(self, anomaly_id: str, terms: Terms) -> Redriven:
        """Try again: money in suspense by the rules that hold now; without any, the chain is asked."""
        redriven = await self._write(_redrive, anomaly_id, terms)
        crash_point("suspense.redriven")
        return redriven

    async def resolve_anomaly(
        self, anomaly_id: str, resolution: str, terms: Terms, quote_id: str | None = None
    ) -> Resolved:
        """Close it. With a quote, its money is given to that one first; if it cannot be, it stays open."""
        resolved = await self._write(_resolve, anomaly_id, resolution, quote_id, terms)
        crash_point("suspense.resolved")
        return resolved


def _redrive(anomaly_id: str, terms: Terms) -> Flow[Done[Redriven]]:
    yield ASK.lock_ledger()
    anomaly = yield from find(anomaly_id)
    if anomaly is None or anomaly.resolved_at is not None:
        return Done(Redriven.UNKNOWN)
    moment = yield MOMENT
    if anomaly.receipt is None:
        return (yield from _ask_again(anomaly, moment.now))
    receipt = receipt_from((yield ASK.receipt(number=anomaly.receipt)))
    book = Book(moment.now)
    book.know((yield from known_quotes([receipt], [anomaly.quote_id] if anomaly.quote_id else [])))
    given = yield from _try_again(book, anomaly, receipt, terms)
    crash_point("suspense.redrive_in_commit")
    return Done(Redriven.CREDITED if given else Redriven.WAITING, (EVENTS,) if book.notices else ())


def _ask_again(anomaly: Anomaly, now: int) -> Flow[Done[Redriven]]:
    """Nothing was received by it yet: the chain says whether something was."""
    signature = anomaly.signature
    if signature is None:
        return Done(Redriven.WAITING)
    if not (yield ASK.requeue_inbox(signature=signature, now=now)):
        row = {"source": "operator", "signature": signature, "call_id": anomaly.id}
        yield ASK.insert_signatures([{**row, "received_at": now, "next_at": now}])
    return Done(Redriven.REQUEUED, (INBOX,))


def _try_again(book: Book, anomaly: Anomaly, receipt: Receipt, terms: Terms) -> Flow[bool]:
    """Whether any of its money was given. What is left of a whole receipt waits by its quotes' reasons."""
    shares = _shares(book, anomaly, receipt, terms)
    given = 0
    for share in shares:
        reason = yield from _give(book, anomaly, receipt, share, terms)
        given += reason is None
        if reason is not None and _is_whole(anomaly):
            book.suspend(receipt, _number(anomaly), share.amount, reason, share.quote_id, terms)
    yield from book.write()
    if given or (shares and _is_whole(anomaly)):
        yield from _close(anomaly, "redriven", book.now)
    return given > 0


def _shares(book: Book, anomaly: Anomaly, receipt: Receipt, terms: Terms) -> tuple[Share, ...]:
    if _is_whole(anomaly) or anomaly.quote_id is None:
        return book.attribution(receipt, terms).shares
    return (Share(anomaly.quote_id, anomaly.amount or 0),)


def _is_whole(anomaly: Anomaly) -> bool:
    """Whether no quote could be told for the receipt, though it may name one: that is decided anew."""
    return anomaly.key == suspense_key(_number(anomaly), None)


def _give(book: Book, anomaly: Anomaly, receipt: Receipt, share: Share, terms: Terms) -> Flow[str | None]:
    """Out of suspense; a code of `reasons` if it has to stay there."""
    reason = yield from book.give(receipt, _number(anomaly), share.quote_id, share.amount, terms)
    if reason is None:
        book.allocate(receipt, share, f"allocation:{anomaly.id}:{share.quote_id}")
    return reason


def _number(anomaly: Anomaly) -> int:
    assert anomaly.receipt is not None, "only a receipt's money waits in suspense"
    return anomaly.receipt


def _close(anomaly: Anomaly, resolution: str, now: int) -> Flow[None]:
    yield ASK.resolve_anomaly(anomaly_id=anomaly.id, resolution=plain(resolution), now=now)
    if anomaly.receipt is not None:
        yield from _release(anomaly)


def _release(anomaly: Anomaly) -> Flow[None]:
    """No quote says any more that this money waits for it."""
    receipt = receipt_from((yield ASK.receipt(number=_number(anomaly))))
    known = yield from known_quotes([receipt], [anomaly.quote_id] if anomaly.quote_id else [])
    for each in known.values():
        if each.quote.status is QuoteStatus.SUSPENSE:
            yield from _release_quote(each.quote)


def _release_quote(quote: Quote) -> Flow[None]:
    """It tells of other money that waits for it; without any it is as before the first came."""
    offer = quote.offer
    waiting = yield ASK.waiting_for(quote_id=offer.id, reference=offer.reference)
    if waiting is None:
        yield ASK.reopen_quote(quote_id=offer.id, status=released_status(quote))
    else:
        yield ASK.hold_quote(quote_id=offer.id, reason=waiting["reason"], signature=waiting["signature"])


def _resolve(anomaly_id: str, resolution: str, quote_id: str | None, terms: Terms) -> Flow[Done[Resolved]]:
    yield ASK.lock_ledger()
    anomaly = yield from find(anomaly_id)
    if anomaly is None or anomaly.resolved_at is not None:
        return Done(Resolved(anomaly, was_resolved=anomaly is not None))
    moment = yield MOMENT
    topics: tuple[str, ...] = ()
    if quote_id is not None:
        refusal = yield from _give_by_hand(anomaly, quote_id, terms, moment.now)
        if refusal is not None:
            return Done(Resolved(anomaly, refusal))
        topics = (EVENTS,)
    yield from _close(anomaly, resolution, moment.now)
    crash_point("suspense.resolve_in_commit")
    return Done(Resolved((yield from find(anomaly_id))), topics)


def _give_by_hand(anomaly: Anomaly, quote_id: str, terms: Terms, now: int) -> Flow[str | None]:
    """To the quote that a person names, whatever the payment itself names; why not, if it cannot be."""
    if anomaly.receipt is None or anomaly.amount is None:
        return "nothing_received"
    receipt = receipt_from((yield ASK.receipt(number=anomaly.receipt)))
    known = yield from known_quotes([], [quote_id])
    if quote_id not in known:
        return NO_SUCH_QUOTE
    if known[quote_id].quote.offer.asset != receipt.asset:
        return "asset_mismatch"
    book = Book(now)
    book.know(known)
    reason = yield from _give(book, anomaly, receipt, Share(quote_id, anomaly.amount), terms)
    if reason is None:
        yield from book.write()
    return reason
