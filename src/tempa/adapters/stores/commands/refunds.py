"""Refunds: asked for, signed, sent and ended; each step is one transaction, with its entry in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.anomalies import find, note_all
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.posting import Book
from tempa.adapters.stores.sql import encode
from tempa.adapters.stores.sql.refund_rows import refund_from
from tempa.adapters.stores.sql.settlement_rows import plain
from tempa.settlement.anomalies import NewAnomaly, lookup_key
from tempa.settlement.journal import Draft
from tempa.settlement.refunds import (
    Outcome,
    RefundState,
    releasing,
    reserving,
    sending,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.journal import Posting
    from tempa.settlement.refunds import NewRefund, Refund, Signed

_MAY_BE_SIGNED = {RefundState.REQUESTED, RefundState.EXPIRED}


class RefundsPart(Access):
    """`SettlementStore`: refunds."""

    async def request_refund(self, new: NewRefund) -> Refund | None:
        """Set the money of an open anomaly aside to be sent back. None: no money waits there."""
        return await self._write(_request, new)

    async def keep_signing(self, refund_id: str, signed: Signed) -> bool:
        """Keep a signed transaction, before anybody has it. False: another may land, or it is over."""
        return await self._write(_keep, refund_id, signed)

    async def note_sent(self, refund_id: str, signature: str) -> bool:
        """A node was given it. False: it is not the one that may land."""
        return await self._write(_note_sent, refund_id, signature)

    async def end_signing(
        self, refund_id: str, signature: str, outcome: Outcome, reason: str | None = None
    ) -> Refund | None:
        """What became of it. None: it had ended; or, for FINAL, its outflow is not in the ledger."""
        return await self._write(_end, refund_id, signature, outcome, reason)

    async def give_up_refund(self, refund_id: str, reason: str) -> Refund | None:
        """Have its money wait in suspense again. None: a transaction of it may land, or it has ended."""
        return await self._write(_give_up, refund_id, reason)

    async def refund(self, refund_id: str) -> Refund | None:
        """One."""
        return await self._read(_one, refund_id)

    async def open_refunds(self, after: str, limit: int) -> list[Refund]:
        """Those that have not ended, oldest first, behind the id `after`."""
        return await self._read(_open, after, limit)

    async def refunds(self, limit: int, before: str | None) -> list[Refund]:
        """All, newest first, from the one before the id `before`."""
        return await self._read(_all, limit, before)


def _request(new: NewRefund) -> Flow[Done[Refund | None]]:
    yield ASK.lock_ledger()
    anomaly = yield from find(new.anomaly_id)
    if anomaly is None or anomaly.resolved_at is not None or None in {anomaly.receipt, anomaly.amount}:
        return Done(None)
    moment = yield MOMENT
    yield ASK.insert_refund(
        id=new.id,
        receipt_number=anomaly.receipt,
        anomaly_id=anomaly.id,
        quote_id=anomaly.quote_id,
        amount=str(anomaly.amount),
        destination=new.destination,
        note=plain(new.note),
        now=moment.now,
    )
    yield ASK.resolve_anomaly(anomaly_id=anomaly.id, resolution=f"refund {new.id}", now=moment.now)
    refund = yield from _one(new.id)
    assert refund is not None, "it was just written"
    yield from _enter("refund_requested", refund, reserving(refund), moment.now)
    return Done(refund)


def _keep(refund_id: str, signed: Signed) -> Flow[Done[bool]]:
    yield ASK.lock_ledger()
    row = yield ASK.refund(refund_id=refund_id)
    if row is None or RefundState(row["state"]) not in _MAY_BE_SIGNED:
        return Done(answer=False)
    moment = yield MOMENT
    yield ASK.insert_signing(
        refund_number=row["number"],
        raw=signed.raw,
        signature=signed.signature,
        last_valid_height=signed.last_valid_height,
        now=moment.now,
    )
    yield ASK.move_refund(refund_id=refund_id, state=RefundState.SIGNED, reason=None, ended_at=None)
    return Done(answer=True)


def _note_sent(refund_id: str, signature: str) -> Flow[Done[bool]]:
    yield ASK.lock_ledger()
    moment = yield MOMENT
    noted = yield ASK.note_sent(signature=signature, now=moment.now)
    if noted:
        yield ASK.move_refund(refund_id=refund_id, state=RefundState.BROADCAST, reason=None, ended_at=None)
    return Done(noted > 0)


def _end(refund_id: str, signature: str, outcome: Outcome, reason: str | None) -> Flow[Done[Refund | None]]:
    yield ASK.lock_ledger()
    row = yield ASK.refund(refund_id=refund_id)
    moment = yield MOMENT
    if row is None or (outcome is Outcome.FINAL and not (yield from _has_left(row, signature))):
        return Done(None)
    ended = yield ASK.end_signing(
        refund_number=row["number"], signature=signature, outcome=outcome, now=moment.now
    )
    if not ended:
        return Done(None)
    yield from _move(row, outcome, reason, moment.now)
    if outcome is Outcome.FINAL:
        yield ASK.clear_anomalies(keys=encode([lookup_key(signature)]), now=moment.now)
    return Done((yield from _one(refund_id)))


def _has_left(row: Any, signature: str) -> Flow[bool]:
    """Whether the transaction took from the treasury what is to be sent back: no more, no less."""
    left = yield ASK.outflows_of(signature=signature)
    amounts = [one["amount"] for one in left if one["asset"] == row["asset"]]
    return amounts == [row["amount"]]


def _move(row: Any, outcome: Outcome, reason: str | None, now: int) -> Flow[None]:
    has_ended = outcome is not Outcome.EXPIRED
    yield ASK.move_refund(
        refund_id=row["id"],
        state=RefundState(outcome.value),
        reason=reason,
        ended_at=now if has_ended else None,
    )
    refund = refund_from(row)
    if outcome is Outcome.FINAL:
        yield from _enter("refund_final", refund, sending(refund), now)
    elif outcome is Outcome.FAILED:
        yield from _wait_again(row, refund, reason, now)


def _give_up(refund_id: str, reason: str) -> Flow[Done[Refund | None]]:
    yield ASK.lock_ledger()
    row = yield ASK.refund(refund_id=refund_id)
    if row is None or RefundState(row["state"]) not in _MAY_BE_SIGNED:
        return Done(None)
    moment = yield MOMENT
    yield from _move(row, Outcome.FAILED, plain(reason), moment.now)
    return Done((yield from _one(refund_id)))


def _wait_again(row: Any, refund: Refund, reason: str | None, now: int) -> Flow[None]:
    """Its money is shown again where it was shown before."""
    yield from _enter("refund_failed", refund, releasing(refund), now)
    anomaly = yield from find(row["anomaly_id"])
    assert anomaly is not None, "anomalies are never deleted"
    again = NewAnomaly(
        key=anomaly.key,
        reason=anomaly.reason,
        signature=anomaly.signature,
        detail=f"refund {refund.id} failed: {reason or 'given up'}",
        asset=anomaly.asset,
        account=anomaly.account,
        amount=refund.amount,
        receipt=anomaly.receipt,
        quote_id=anomaly.quote_id,
    )
    yield from note_all([again], now)


def _enter(kind: str, refund: Refund, postings: tuple[Posting, ...], now: int) -> Flow[None]:
    """An entry of the journal."""
    book = Book(now)
    detail = {"refund": refund.id, "signature": refund.signature, "destination": refund.destination}
    key = f"{kind}:{refund.id}"
    book.drafts.append(Draft(kind=kind, key=key, at_ms=now, postings=postings, detail=detail))
    yield from book.write()


def _one(refund_id: str) -> Flow[Refund | None]:
    row = yield ASK.refund(refund_id=refund_id)
    return None if row is None else (yield from _whole([row]))[0]


def _open(after: str, limit: int) -> Flow[list[Refund]]:
    return (yield from _whole((yield ASK.refunds_open(after=after, limit=limit))))


def _all(limit: int, before: str | None) -> Flow[list[Refund]]:
    return (yield from _whole((yield ASK.refunds(before=before, limit=limit))))


def _whole(rows: Sequence[Any]) -> Flow[list[Refund]]:
    signings = yield ASK.signings_of(refund_numbers=encode([row["number"] for row in rows]))
    return [refund_from(row, signings) for row in rows]
