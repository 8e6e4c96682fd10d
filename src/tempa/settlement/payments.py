"""What is known of a payment: how it stands, why, what happens next, and which part of it is whose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from tempa.settlement.attribution import memo_for
from tempa.settlement.inbox import InboxState
from tempa.settlement.reasons import REASONS

if TYPE_CHECKING:
    from collections.abc import Collection

    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.inbox import InboxEntry
    from tempa.settlement.post import Allocation, Recorded
    from tempa.settlement.quotes import Quote


class PaymentStatus(StrEnum):
    """How a payment stands."""

    PENDING = "pending"
    CREDITED = "credited"
    SUSPENSE = "suspense"  # some of it, or all, waits for a person
    REFUSED = "refused"  # it pays nothing here
    RESOLVED = "resolved"  # a person has seen to it


_NEXT = {
    PaymentStatus.PENDING: "The chain is asked again by itself, until it shows the payment at finality.",
    PaymentStatus.CREDITED: "Nothing: it is booked, for good.",
    PaymentStatus.SUSPENSE: "The operator gives it to a quote, or sends it back.",
    PaymentStatus.REFUSED: "Nothing: asking the chain again gives the same.",
    PaymentStatus.RESOLVED: "Nothing: the operator has seen to it.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A transaction, by all that the store knows of it, or by what of that is one account's."""

    signature: str
    heard: tuple[InboxEntry, ...] = ()
    receipts: tuple[Recorded, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether anything is known of it."""
        return bool(self.heard or self.receipts or self.anomalies)

    @property
    def is_given(self) -> bool:
        """Whether any of it was given to a quote."""
        return any(one.allocations for one in self.receipts)

    @property
    def status(self) -> PaymentStatus:
        """How it stands. Money that waits comes first: it is what somebody has to do something about."""
        if any(one.amount is not None for one in self._open()):
            return PaymentStatus.SUSPENSE
        if self.is_given:
            return PaymentStatus.CREDITED
        states = {entry.state for entry in self.heard}
        if InboxState.PENDING in states:
            return PaymentStatus.PENDING
        if self.receipts or any(one.resolved_at for one in self.anomalies):
            return PaymentStatus.RESOLVED
        if InboxState.TERMINAL in states:
            return PaymentStatus.REFUSED
        return PaymentStatus.SUSPENSE if self._open() or states else PaymentStatus.PENDING

    @property
    def reason(self) -> str | None:
        """Why it waits or was refused: a code of `reasons`."""
        if self.status in {PaymentStatus.CREDITED, PaymentStatus.RESOLVED}:
            return None
        told = [one.reason for one in self._open() if one.amount is not None]
        told += [one.reason for one in self._open()]
        told += [entry.reason for entry in self.heard if entry.reason]
        return told[0] if told else None

    @property
    def what_next(self) -> str:
        """In words."""
        return _NEXT[self.status]

    def waiting(self, receipt: Recorded) -> int:
        """How much of a receipt waits for a person. Base units."""
        mine = (one for one in self._open() if one.receipt == receipt.number)
        return sum(one.amount or 0 for one in mine)

    def _open(self) -> list[Anomaly]:
        return [one for one in self.anomalies if one.resolved_at is None]


def share_of(payment: Payment, account: str, quotes: Collection[Quote]) -> Payment | None:
    """What of a payment is an account's, `quotes` being those of its own that the payment names.

    None if nothing is: that others were paid is not its business, not even that they were.
    """
    named = {one.number for one in payment.receipts if _names(one, quotes)}
    ids = {quote.offer.id for quote in quotes}
    anomalies = tuple(
        one
        for one in payment.anomalies
        if (one.receipt in named if one.quote_id is None else one.quote_id in ids)
    )
    receipts = tuple(replace(one, allocations=_given(one, account)) for one in payment.receipts)
    waiting = {one.receipt for one in anomalies}
    mine = tuple(one for one in receipts if one.allocations or one.number in waiting)
    if not (mine or anomalies or quotes):
        return None
    return replace(payment, receipts=mine, anomalies=anomalies)


def words_of(reason: str | None) -> str | None:
    """A reason in whole sentences, with what to do."""
    row = REASONS.get(reason or "")
    return None if row is None else row.words


def _given(recorded: Recorded, account: str) -> tuple[Allocation, ...]:
    return tuple(one for one in recorded.allocations if one.account == account)


def _names(recorded: Recorded, quotes: Collection[Quote]) -> bool:
    """Whether the money itself names one of them: a transaction may pay others beside."""
    said = {*recorded.receipt.references, *recorded.receipt.memos}
    return any({quote.offer.reference, memo_for(quote.offer.id)} & said for quote in quotes)
