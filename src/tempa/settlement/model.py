"""Values that pass between the chain, the ledger and the rentals. Amounts are integers of base units."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SOL = "SOL"
"""The name of the chain's own asset. A token's name is its mint's address (base58)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreasuryAccount:
    """One row of the allow-list: an account whose gain is money that came in.

    - `asset`: `SOL`, or the mint's address.
    - `address`: the account itself: for SOL the wallet, for a token the treasury's token account.
    - `owner`: the treasury's wallet.
    - `program`: the token program that owns the account; None for SOL.
    - `decimals`: of the asset; pinned, never read from a payment.
    - `extensions`: the Token-2022 extensions that the mint may have, by name.
    - `refusal`: why what comes here is not credited at present (a code of `reasons`), as the watch over the
      account and its mint found it; None if nothing is wrong.
    """

    asset: str
    address: str
    owner: str
    program: str | None
    decimals: int
    extensions: frozenset[str] = frozenset()
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Treasury:
    """What counts as money here. `cluster` is the chain's genesis hash: other chains' money is none."""

    cluster: str
    accounts: tuple[TreasuryAccount, ...]
    dust: Mapping[str, int] = field(default_factory=dict)  # by asset: what is less waits in suspense


@dataclass(frozen=True, slots=True)
class Part:
    """One transfer into a treasury account and the references that stand in its own instruction."""

    amount: int
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A gain of one treasury account by one transaction, as the chain shows it at finality.

    Unique by (cluster, signature, asset, account). `amount` > 0. `index` is its place in the block, None when
    the node does not tell. `block_time` in Unix seconds, None when the chain has none. `payer`: whose balance
    fell or who authorised the transfer; for people and refunds, never an authorisation. `references`: account
    keys that are neither programs nor moved balances; `memos` in the transaction's order. `parts`: the single
    transfers, where the instructions tell of them and they sum to `amount`; else empty.
    """

    cluster: str
    signature: str
    asset: str
    account: str
    amount: int
    slot: int
    index: int | None
    block_time: int | None
    payer: str | None
    references: tuple[str, ...] = ()
    memos: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outflow:
    """What left a treasury account by one transaction: receipts less outflows are the account's balance.

    `kind`: `transfer`, or `fee` where the treasury paid for the transaction (also for one that failed, and
    beside a receipt). `amount` > 0. Unique by (cluster, signature, asset, account, kind).
    """

    cluster: str
    signature: str
    asset: str
    account: str
    kind: str
    amount: int
    slot: int
    index: int | None
    block_time: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """A gain of the treasury that is not credited, and why (a code of `reasons`): a person has to look.

    `account` is on the allow-list but may take nothing now, or belongs to the treasury's wallet and is not
    on the list. `amount` > 0.
    """

    signature: str
    asset: str
    account: str
    amount: int
    slot: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one transaction did to the treasury. `reason` (a code of `reasons`) is None only with receipts.

    `slot` is None for an answer that could not be read; `error` is the chain's own, of a transaction that
    failed.
    """

    signature: str
    slot: int | None = None
    receipts: tuple[Receipt, ...] = ()
    outflows: tuple[Outflow, ...] = ()
    strays: tuple[Stray, ...] = ()
    reason: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Invoice:
    """What a payment may be for: a quote, by its reference, in its asset."""

    quote_id: str
    reference: str
    asset: str


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a receipt is for which quote."""

    quote_id: str
    amount: int


@dataclass(frozen=True, slots=True)
class Attribution:
    """To which quotes a receipt belongs: shares that sum to its amount, or `reason`, why to none."""

    shares: tuple[Share, ...] = ()
    reason: str | None = None


class QuoteStatus(StrEnum):
    """What a customer is told of a quote."""

    OPEN = "open"
    SEEN = "seen"  # a payment was heard of, and is not final
    FINAL = "final"  # it is final, and not booked yet
    CREDITED = "credited"
    PARTIAL = "partial"  # less than was asked for came; it is credited for what it buys
    LATE = "late"  # it came after the price lock; credited at the price of its time
    SUSPENSE = "suspense"  # money is here that could not be given to this quote; a person has to look
    EXPIRED = "expired"


class InstanceStatus(StrEnum):
    """Of a GPU instance."""

    AVAILABLE = "AVAILABLE"
    ACTIVE = "ACTIVE"
    GRACE = "GRACE"
    EXPIRED = "EXPIRED"
    SUSPENDED = "SUSPENDED"
