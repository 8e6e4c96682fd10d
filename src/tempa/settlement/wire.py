"""What rentals, quotes and payments look like on the wire (CONTRACTS section 4).

Amounts are integers of base units in strings: as numbers, JSON's readers agree only up to 2**53.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from tempa.core import base58
from tempa.settlement.model import SOL
from tempa.settlement.rentals import GRANT_SECONDS_MAX

PRICE_AMOUNT_MAX = 2**53 - 1
"""Of base units. A quote tells its price as a fraction of numbers, which all readers of JSON take exactly."""

ANOTHER_ACCOUNT = "another account"
"""Who rents an instance, to those whom it does not concern. No account can have this name."""


class Strict(BaseModel):
    """Base of request models."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    """Base of answers. Clients must ignore fields they do not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


# Renting


def _asset(text: str) -> str:
    if text != SOL and not base58.is_address(text):
        raise PydanticCustomError("asset", "Must be SOL, or a mint's address (base58)")
    return text


def _price_amount(text: str) -> str:
    if int(text) > PRICE_AMOUNT_MAX:
        raise PydanticCustomError(
            "too_much", "At most {le} base units: give a price for fewer seconds", {"le": PRICE_AMOUNT_MAX}
        )
    return text


Asset = Annotated[
    str,
    Field(min_length=3, max_length=44, description="`SOL`, or the address of a token's mint."),
    AfterValidator(_asset),
]
PriceAmount = Annotated[
    str,
    Field(
        pattern=r"^[1-9][0-9]{0,15}$",
        description="Base units of the asset (of SOL: lamports): a whole number above 0 in a string.",
        examples=["500000000"],
    ),
    AfterValidator(_price_amount),
]
Seconds = Annotated[int, Field(ge=1, le=GRANT_SECONDS_MAX)]


class PriceOfInstance(Strict):
    """What an instance costs in one asset: `amount` for `seconds`."""

    asset: Asset
    amount: PriceAmount
    seconds: Seconds


def _one_an_asset(prices: list[PriceOfInstance]) -> list[PriceOfInstance]:
    assets = [price.asset for price in prices]
    twice = next((asset for index, asset in enumerate(assets) if asset in assets[:index]), None)
    if twice is not None:
        raise PydanticCustomError("repeated", "One price an asset; {asset} has several", {"asset": twice})
    return prices


Prices = Annotated[
    list[PriceOfInstance],
    Field(min_length=1, max_length=100, description="Each in another asset."),
    AfterValidator(_one_an_asset),
]


class AddInstance(Strict):
    """Body of `POST /v1/gpu-instances`."""

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    prices: Prices


class ChangePrices(Strict):
    """Body of `PATCH /v1/gpu-instances/{id}`: all its prices from now on. Open quotes keep theirs."""

    prices: Prices


class PriceView(Answer):
    """What an instance costs in one asset."""

    asset: str
    amount: str = Field(description="Base units.")
    seconds: int


class GpuInstanceView(Answer):
    """A GPU instance and who rents it until when."""

    id: str
    name: str
    status: Literal["AVAILABLE", "ACTIVE", "GRACE", "EXPIRED", "SUSPENDED"] = Field(
        description="GRACE: the rental is over and may still be prolonged; EXPIRED: so is the grace."
    )
    current_expiry: datetime | None = Field(
        description="When the latest rental ends, or ended; null: it was never rented."
    )
    renter: str | None = Field(
        description="Whose the rental is, until its grace is over: the account's name to itself and to the "
        f"operator, `{ANOTHER_ACCOUNT}` to others. null: nobody's."
    )
    prices: list[PriceView]
    created_at: datetime
    suspended_at: datetime | None


class AskQuote(Strict):
    """Body of `POST /v1/rentals/quotes`."""

    gpu_instance_id: Annotated[str, Field(min_length=1, max_length=64)]
    asset: Asset
    seconds: Seconds


class RateView(Answer):
    """A price in lowest terms: seconds for one base unit are `numerator / denominator`."""

    numerator: int
    denominator: int


class QuoteProgress(Answer):
    """When something was first known of a quote's payment, and its slot on the chain."""

    at: datetime
    slot: int | None


class QuoteView(Answer):
    """What so many seconds of an instance cost, and how far the payment is."""

    quote_id: str
    gpu_instance_id: str
    asset: str
    decimals: int = Field(description="Of the asset: a user unit has 10 ** `decimals` base units.")
    seconds: int
    amount: str = Field(description="Base units that buy all `seconds`.")
    price: RateView
    treasury: str = Field(description="The wallet to pay. A wallet derives the token account by itself.")
    reference: str = Field(description="The key by which a payment names this quote.")
    solana_pay_url: str
    status: Literal["open", "seen", "final", "credited", "partial", "late", "suspense", "expired"]
    created_at: datetime
    expires_at: datetime = Field(description="Until when the price is locked.")
    seen: QuoteProgress | None = Field(description="A payment was heard of.")
    final: QuoteProgress | None = Field(description="It is final.")
    credited: QuoteProgress | None = Field(description="It became time.")
    signature: str | None = Field(description="Of the latest transaction that pays it.")
    paid: str = Field(description="Base units that were credited to it so far.")
    granted_seconds: int
    reason: str | None = Field(description="Why money for it waits: a code.")
    message: str = Field(description="The same, or what happens next, in words.")


# Payments


class CallTaken(Answer):
    """What a provider's call came to."""

    accepted: int = Field(description="Signatures that were not known from this source.")
    duplicates: int
    rejected: int = Field(description="Entries that no signature could be taken from; kept for the operator.")


class HeardView(Answer):
    """A payment as one source told of it: a provider, a subscription, the sweep."""

    source: str
    state: Literal["pending", "credited", "suspense", "terminal"] = Field(
        description="suspense: it is in the ledger, and none of it was given to a quote."
    )
    reason: str | None
    attempts: int = Field(description="Lookups that a node's trouble has spoiled.")
    received_at: datetime
    next_lookup_at: datetime | None
    settled_at: datetime | None


class AllocationView(Answer):
    """What of a receipt was given to a quote, and what it bought."""

    quote_id: str
    gpu_instance_id: str
    amount: str
    seconds: int
    current_expiry: datetime | None = Field(description="When the rental ended then.")
    allocated_at: datetime


class ReceiptView(Answer):
    """What came into one account of the treasury, as the chain shows it at finality."""

    asset: str
    amount: str
    account: str = Field(description="Of the treasury.")
    slot: int
    block_time: datetime | None
    payer: str | None
    posted_at: datetime
    waiting: str = Field(description="How much of it waits for a person.")
    allocations: list[AllocationView]


class AnomalyView(Answer):
    """What a person has to look at. `raw_payload` is the call that told of it, as far as it is shown here."""

    id: str
    reason: str
    message: str = Field(description="The reason in words, with what to do.")
    error_trace: str = Field(description="What was found, in detail; of a node: its own words.")
    signature: str | None
    source: str | None
    raw_payload: str | None
    raw_encoding: Literal["utf-8", "base64"] | None
    raw_size_bytes: int | None = Field(description="Of the whole call; a list shows up to 16 KiB of it.")
    asset: str | None
    account: str | None = Field(description="Of the treasury, where money is.")
    amount: str | None
    quote_id: str | None
    count: int
    created_at: datetime
    seen_at: datetime = Field(description="The latest time.")
    resolved_at: datetime | None
    resolution: str | None


class PaymentView(Answer):
    """All that is known of a transaction, as far as it is the caller's."""

    signature: str
    status: Literal["pending", "credited", "suspense", "refused", "resolved"] = Field(
        description="suspense: money is here that waits for a person; refused: it pays nothing here; "
        "resolved: a person has seen to it."
    )
    reason: str | None
    message: str | None = Field(description="The reason in words.")
    what_next: str
    heard: list[HeardView]
    receipts: list[ReceiptView]
    anomalies: list[AnomalyView] = Field(description="For the operator; to others, none.")


class LedgerLineView(Answer):
    """One credit. The first ten are the columns of the view `gpu_rental_ledger`."""

    id: str
    tx_signature: str
    user_wallet: str | None
    gpu_instance_id: str
    amount_lamports: str | None = Field(description="The amount, if the asset is SOL.")
    amount: str
    asset: str
    rent_seconds_added: int
    status: Literal["CONFIRMED"]
    created_at: datetime
    quote_id: str
    account: str
    slot: int
    block_time: datetime | None
    current_expiry: datetime | None = Field(description="When the rental ended then.")
    price: str | None = Field(description="Seconds for one base unit, as `numerator/denominator`.")


class TreasuryAccountView(Answer):
    """An account of the treasury. What comes to it is credited, unless there is a refusal."""

    asset: str
    address: str
    decimals: int
    program: str | None = Field(description="The token program that owns it; null for SOL.")
    refusal: str | None = Field(description="Why nothing that comes to it is credited now: a reason's code.")
    message: str | None = Field(description="The same in words.")


class NodeView(Answer):
    """A node of the chain, as it was last looked at."""

    name: str
    rpc_url: str | None = Field(description="Only of a node on this machine: others' URLs may hold a key.")
    slot: int | None = Field(description="Its newest final one; null: it did not say.")
    excluded: str | None = Field(description="Why it is not asked now: a reason's code.")
    message: str | None = Field(description="The same in words.")


class TreasuryView(Answer):
    """Where payments go, and who tells of them."""

    wallet: str
    cluster: str | None = Field(description="The chain's genesis hash; null until it is known.")
    is_known: bool = Field(description="Whether payments are looked up and credited now.")
    message: str
    accounts: list[TreasuryAccountView] = Field(description="None until all of them were found.")
    nodes: list[NodeView] = Field(description="In the order in which they are asked.")


class AnomalyRedriven(Answer):
    """What a re-drive came to."""

    id: str
    outcome: Literal["requeued", "credited", "waiting"]
    message: str


Words = Annotated[
    str,
    Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$", description="It stays on record."),
]


class Resolve(Strict):
    """Body of `POST /v1/payments/anomalies/{id}/resolve`."""

    resolution: Words = Field(description="What was done about it; stays on record.")
    quote_id: Annotated[str, Field(min_length=1, max_length=64)] | None = Field(
        None, description="Give the money that waits to this quote."
    )


def _wallet(text: str) -> str:
    if not base58.is_address(text):
        raise PydanticCustomError("address", "Must be a wallet's address: base58 of 32 bytes")
    return text


class AskRefund(Strict):
    """Body of `POST /v1/payments/refunds`: of what, by `anomaly_id` or else `signature`, and to whom."""

    anomaly_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    signature: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        None, description="Of the payment: enough where one anomaly alone has money of it."
    )
    recipient: Annotated[str, AfterValidator(_wallet)] = Field(
        description="The wallet that gets the money, also of a token. Whoever paid has to name it."
    )
    note: Words | None = Field(None, description="Who named the recipient, and why; stays on record.")


class GiveUpRefund(Strict):
    """Body of `POST /v1/payments/refunds/{id}/give-up`."""

    reason: Words


class RefundTransactionView(Answer):
    """A transaction that was signed for a refund."""

    signature: str
    outcome: Literal["final", "failed", "expired"] | None = Field(description="null: it may still land.")
    last_valid_height: int = Field(description="Above this height of blocks it can land no more.")
    signed_at: datetime
    sent_at: datetime | None


class RefundView(Answer):
    """Money that is sent back, and how far it is."""

    id: str
    state: Literal["requested", "signed", "broadcast", "expired", "final", "failed"]
    message: str = Field(description="The state in words, with what happens next.")
    asset: str
    amount: str
    recipient: str
    signature: str = Field(description="Of the payment.")
    anomaly_id: str
    account: str = Field(description="Of the treasury.")
    note: str
    reason: str | None = Field(description="Why it failed.")
    requested_at: datetime
    ended_at: datetime | None
    transactions: list[RefundTransactionView]
