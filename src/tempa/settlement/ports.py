"""What the settlement slice asks of the world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from datetime import datetime

    from tempa.settlement.anomalies import Anomaly, NewAnomaly, Redriven, Resolved
    from tempa.settlement.inbox import Cursor, InboxClaim, InboxEnding, InboxEntry, Incoming, TakenIn
    from tempa.settlement.journal import JournalEntry
    from tempa.settlement.model import Receipt
    from tempa.settlement.post import (
        Flows,
        LedgerEnds,
        LedgerLine,
        Posted,
        Proven,
        QuotePayment,
        Recorded,
        Terms,
    )
    from tempa.settlement.quotes import Closed, NewQuote, PriceOffer, Quote, QuoteSighting
    from tempa.settlement.refund_order import Order
    from tempa.settlement.refunds import NewRefund, Outcome, Refund, Signed
    from tempa.settlement.rentals import Expired, GpuInstance, InstanceAct, NewInstance

# The chain


@dataclass(frozen=True, slots=True)
class Found:
    """A transaction, finalized: the member `result` of the node's answer. `node` is its name."""

    answer: Mapping[str, Any]
    node: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """The node does not show it at finality. Never a failure: it may land, or this node may be behind."""

    node: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """No answer, and why: a code of `reasons`, transient or an alarm to the operator.

    `detail` is for the log: the node's own words, bounded, without the URL, which may hold a key.
    """

    reason: str
    node: str
    retry_after_seconds: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One row of an account's history. `failed`: it did nothing. `block_time` in Unix seconds.

    `memo`: all memos of the transaction, each behind its length; None: it has none, or the node keeps none.
    """

    signature: str
    slot: int
    failed: bool
    block_time: int | None
    memo: str | None = None


@dataclass(frozen=True, slots=True)
class SignatureStatus:
    """How far a transaction has come: `processed`, `confirmed` or `finalized`."""

    slot: int
    failed: bool
    commitment: str


@dataclass(frozen=True, slots=True)
class AccountState:
    """An account as of `slot`: the node's `jsonParsed` value, None if there is no such account."""

    slot: int
    value: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Blockhash:
    """What a transaction is signed on. Above `last_valid_height` it can land no more."""

    text: str
    last_valid_height: int


class Signer(Protocol):
    """Signs refunds. It has the treasury's key, which nothing else has; what it refuses is a `Trouble`.

    Bytes that do anything else than `order` are not kept.
    """

    async def sign(self, refund: Refund, order: Order) -> Signed | Trouble: ...  # anew, sent to nobody


class Outlet(Protocol):
    """A node that takes transactions."""

    async def latest_blockhash(self) -> Blockhash | Trouble: ...  # of a block that no fork takes away
    async def send(self, raw: bytes) -> str | Trouble: ...  # the signature; the same bytes may be sent again


class Chain(Protocol):
    """One node of the chain, at finality. Never raises for anything a node can do: `Trouble` tells of it.

    No call is tried twice: who asks knows when to ask again, or whom.
    """

    @property
    def name(self) -> str: ...  # for people: without the key that a URL may hold

    async def get_transaction(self, signature: str) -> Found | NotFound | Trouble: ...
    async def signatures_for_address(
        self,
        address: str,
        *,
        before: str | None = None,
        limit: int = 1000,
        min_context_slot: int | None = None,
    ) -> list[Sighting] | Trouble: ...  # newest first, in any order within a slot; `before`: a signature
    async def statuses(
        self, signatures: Sequence[str]
    ) -> list[SignatureStatus | None] | Trouble: ...  # in the order asked; None: not known
    async def account(
        self, address: str, *, min_context_slot: int | None = None
    ) -> AccountState | Trouble: ...
    async def slot(self) -> int | Trouble: ...
    async def block_height(self) -> int | Trouble: ...
    async def genesis_hash(self) -> str | Trouble: ...
    async def close(self) -> None: ...


# Subscriptions


class GapReason(StrEnum):
    """Why a subscription may have missed something."""

    CONNECTED = "connected"  # it has just begun; what came before it was not told
    REFUSED = "refused"  # nobody answers, or the server does not give what was asked of it
    LOST = "lost"  # the connection broke
    SILENT = "silent"  # the connection stands, but no slot was told of for too long
    SKIPPED = "skipped"  # a slot builds on one that was never told of
    OVERFLOW = "overflow"  # more was told than could be written down in time


@dataclass(frozen=True, slots=True)
class Pushed:
    """A transaction that names one of the addresses: a hint to look it up, and nothing more.

    `slot` is what the server says, None if that is no slot. `raw` are the bytes that it came in, for people.
    """

    signature: str
    slot: int | None
    raw: bytes


@dataclass(frozen=True, slots=True)
class Reached:
    """The server lives: its chain is final up to `slot`."""

    slot: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Something may have been missed up to here. `detail` for the log: bounded, without the URL."""

    reason: GapReason
    detail: str = ""


Told = Pushed | Reached | Gap


class PushSource(Protocol):
    """One server that tells of transactions as they become final. It may miss any of them.

    `listen` is one connection. It tells `Gap(CONNECTED)` once everything is subscribed, and ends, after a
    `Gap` that says why, when the connection is of no more use. Never raises for anything a server can do.
    Nothing that it does not iterate over waits in memory without bounds.
    """

    @property
    def name(self) -> str: ...  # the `source` of what it brings into the inbox

    def listen(
        self, addresses: Sequence[str], from_slot: int | None
    ) -> AsyncGenerator[Told, None]: ...  # with what is final since `from_slot`, if the server keeps that


class Guard(Protocol):
    """A quick memory in front of the inbox, of what it surely holds. It only saves work and never decides.

    It may forget, be slow, be down or be wrong: nothing but speed hangs on it, as the sweep looks past it.
    Its calls never raise, and take a bounded time.
    """

    async def known(self, source: str, words: Sequence[str]) -> frozenset[str]: ...  # of `words`
    async def remember(self, source: str, words: Sequence[str]) -> None: ...  # only what is on disk
    async def close(self) -> None: ...


# The store


ReceiptPlace = tuple[int, int, str, str, str]
"""Slot, index in the block (-1: not told), account, signature, asset: the order of receipts on the chain."""

Place = tuple[int, int]
"""Where a pass over the quotes goes on. It means something to the store alone."""


class SettlementStore(Protocol):
    """The inbox, the ledger, quotes and rentals. Each command is one whole transaction, its events included.

    A command returns after its commit is on disk, and has then rung the topics of what changed. A store that
    cannot be reached or written raises `StoreUnavailable` and has done nothing. Commands that are marked
    "batched" share a transaction with others that wait; a faulty one fails alone.
    """

    async def take_in(self, incoming: Incoming) -> TakenIn: ...  # batched; durable when it returns
    async def claim_inbox(self, limit: int, lease_seconds: float) -> list[InboxClaim]: ...
    async def settle_inbox(self, endings: Sequence[InboxEnding]) -> None: ...  # what is not credited
    async def free_inbox(self) -> int: ...  # at start: lookups of the dead instance are due again
    async def next_lookup(self) -> datetime | None: ...  # when the next is due; None: nothing waits
    async def pending_lookups(self) -> tuple[int, datetime | None]: ...  # how many, and the oldest's arrival
    async def missed_lookups(self, limit: int) -> list[str]: ...  # no node showed them, and they are not due
    async def recall_lookups(self, signatures: Sequence[str]) -> int: ...  # of those, what is due at once now
    async def is_looking_up(
        self, source: str, since: datetime, until: datetime
    ) -> bool: ...  # whether anything waits that this source told of in between
    async def inbox_of(self, signature: str) -> list[InboxEntry]: ...
    async def forget_nonces(self, before: datetime, limit: int) -> int: ...
    async def cursor(self, address: str) -> Cursor | None: ...
    async def advance_cursor(self, address: str, cursor: Cursor) -> None: ...  # it never goes back

    async def post_credits(self, proven: Proven) -> Posted: ...  # batched; all that one transaction did
    async def receipts_of(self, signature: str) -> list[Recorded]: ...
    async def receipts(self, after: int, limit: int) -> list[Recorded]: ...  # in the order posted
    async def ledger(
        self, account: str | None, after: int, limit: int
    ) -> list[LedgerLine]: ...  # what was credited, oldest first; None: to anybody
    async def journal(self, after: int, limit: int) -> list[JournalEntry]: ...
    async def entry_of(self, receipt: Receipt) -> JournalEntry | None: ...
    async def ledger_ends(self) -> LedgerEnds: ...  # how far it goes: what is numbered so far never changes
    async def receipts_by_place(
        self, after: ReceiptPlace | None, limit: int, up_to: int
    ) -> list[Receipt]: ...  # in the chain's order, of those numbered up to `up_to`
    async def lowest_receipt(
        self, after: int, up_to: int
    ) -> Receipt | None: ...  # the first in the chain's order of those numbered since
    async def entry_hashes(self, after: int, up_to: int, limit: int) -> list[tuple[int, str]]: ...
    async def entries(self, keys: Sequence[str]) -> list[JournalEntry]: ...  # of what happened, in order
    async def payments_of_quote(
        self, quote_id: str, after: int, limit: int
    ) -> list[QuotePayment]: ...  # what was given to it, in order
    async def flows(
        self, up_to: int | None = None
    ) -> Mapping[tuple[str, str], Flows]: ...  # up to a slot, by asset and account of the treasury
    async def balances(self) -> Mapping[tuple[str, str], int]: ...  # by account of the journal and asset

    async def open_quote(self, new: NewQuote) -> Quote | Closed: ...
    async def quote(self, account: str, quote_id: str) -> Quote | None: ...
    async def quotes(self, account: str, limit: int, before: str | None) -> list[Quote]: ...  # newest first
    async def quotes_of(
        self, account: str, signature: str
    ) -> list[Quote]: ...  # the account's, whose latest transaction it is
    async def watched_quotes(
        self, expired_after: datetime, after: Place | None, limit: int
    ) -> tuple[list[Quote], Place | None]: ...  # a page of those to look for on the chain, and the next one's
    async def note_progress(
        self, sightings: Sequence[QuoteSighting]
    ) -> int: ...  # quotes that came further: seen, or final

    async def add_instance(self, new: NewInstance) -> GpuInstance: ...
    async def change_prices(self, gpu_instance_id: str, prices: Sequence[PriceOffer]) -> bool: ...
    async def instance(self, gpu_instance_id: str) -> GpuInstance | None: ...
    async def instances(self, limit: int, after: str | None) -> list[GpuInstance]: ...  # oldest first
    async def instance_acts(
        self, after: int, limit: int
    ) -> list[InstanceAct]: ...  # what operators did to instances, in order
    async def suspend_instance(self, gpu_instance_id: str) -> bool: ...  # False: there is none, or it is
    async def resume_instance(self, gpu_instance_id: str) -> bool: ...  # with the time that was left
    async def expire_rentals(
        self, warn_seconds: float, grace_seconds: float, limit: int
    ) -> Expired: ...  # warns, lets into grace and ends up to `limit` of each

    async def request_refund(self, new: NewRefund) -> Refund | None: ...  # None: no money waits there
    async def keep_signing(
        self, refund_id: str, signed: Signed
    ) -> bool: ...  # before anybody else has it; False: another may land
    async def note_sent(self, refund_id: str, signature: str) -> bool: ...
    async def end_signing(
        self, refund_id: str, signature: str, outcome: Outcome, reason: str | None = None
    ) -> Refund | None: ...  # final only behind its outflow; failed: its money waits again
    async def give_up_refund(self, refund_id: str, reason: str) -> Refund | None: ...  # None: it may land
    async def refund(self, refund_id: str) -> Refund | None: ...
    async def open_refunds(self, after: str, limit: int) -> list[Refund]: ...  # oldest first
    async def refunds(self, limit: int, before: str | None) -> list[Refund]: ...  # all, newest first

    async def note_anomaly(self, new: NewAnomaly) -> None: ...
    async def clear_anomaly(self, key: str, resolution: str) -> bool: ...  # False: it was not open
    async def anomalies(self, limit: int, before: str | None) -> list[Anomaly]: ...  # open ones, newest first
    async def anomaly(self, anomaly_id: str) -> Anomaly | None: ...
    async def anomalies_of(self, signature: str) -> list[Anomaly]: ...  # resolved ones too, without `raw`
    async def anomaly_counts(self) -> Mapping[str, int]: ...  # reason -> open ones
    async def redrive_anomaly(self, anomaly_id: str, terms: Terms) -> Redriven: ...
    async def resolve_anomaly(
        self, anomaly_id: str, resolution: str, terms: Terms, quote_id: str | None = None
    ) -> Resolved: ...  # with a quote, its money is given to that one
