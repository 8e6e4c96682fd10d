"""What a proof of credit consists of. It is complete: who has it needs nothing of ours to check it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tempa.settlement.answer import U64_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = "tempa-proof-of-credit/1"

_PATH_MAX = 64  # a tree of 2**64 leaves

Amount = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,19})$", description="Base units.")]
Digits = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,39})$")]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256, in hex.")]
PostingText = Annotated[
    list[str], Field(min_length=3, max_length=3, description="Account, asset, amount: above 0 is debit.")
]
Path = Annotated[list[Hash], Field(max_length=_PATH_MAX)]
Count = Annotated[int, Field(ge=0, le=U64_MAX)]
Number = Annotated[int, Field(ge=1, le=U64_MAX)]
Milliseconds = Annotated[
    int, Field(ge=0, lt=253_402_300_800_000, description="Unix time: up to the year 9999.")
]


class _Part(BaseModel):
    """Base of a proof's parts. A reader ignores what a later format adds."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class TreasuryRow(_Part):
    """An account whose gain is money that came in."""

    asset: str
    address: str
    owner: str
    program: str | None
    decimals: int
    extensions: list[str]


class TreasuryPart(_Part):
    """What counts as money. `cluster`: the chain's genesis hash."""

    cluster: str
    accounts: list[TreasuryRow]


class EvidencePart(_Part):
    """What a node answered to `getTransaction` at finality: JSON as text, so that no number is altered."""

    node: str
    answer: str
    sha256: Hash


class TransferPart(_Part):
    """One transfer into the account, and the references that stand in its own instruction."""

    amount: Amount
    references: list[str]


class ReceiptPart(_Part):
    """The gain of one treasury account by the transaction: what is hashed into the root."""

    cluster: str
    signature: str
    asset: str
    account: str
    amount: Amount
    slot: Count
    index: Count | None
    block_time: Count | None
    payer: str | None
    references: list[str]
    memos: list[str]
    parts: list[TransferPart]


class RatePart(_Part):
    """Seconds for a base unit."""

    numerator: Number
    denominator: Number


class LegPart(_Part):
    """How much was paid at one price."""

    price: RatePart
    paid: Digits


class EarlierPart(_Part):
    """What the quote was paid and granted before: seconds come from all of it together."""

    legs: list[LegPart]
    seconds: Count


class AllocationPart(_Part):
    """What of the receipt was given to a quote, at which price, and the seconds that it added."""

    quote_id: str
    account: str
    amount: Amount
    seconds: Count
    price: RatePart
    earlier: EarlierPart


class InclusionPart(_Part):
    """Where a leaf lies, and the hashes beside its way to the root, the lowest first (RFC 6962)."""

    index: Count
    path: Path


class CreditPart(_Part):
    """A receipt and where its money is. `waiting`: what is in suspense, or was given to others."""

    receipt: ReceiptPart
    posted_at_ms: Milliseconds
    allocations: list[AllocationPart]
    inclusion: InclusionPart


class QuotePart(_Part):
    """The terms that were paid for."""

    id: str
    gpu_instance_id: str
    asset: str
    decimals: int
    reference: str
    amount: Digits
    seconds: Count
    price: RatePart
    created_at_ms: Milliseconds
    expires_at_ms: Milliseconds


class EntryBody(_Part):
    """What the entry's hash is over, beside the hash before it."""

    kind: str
    key: str
    at_ms: Milliseconds
    postings: list[PostingText]
    detail: dict[str, Any]


class EntryPart(_Part):
    """An entry. `body` is null where it tells of another account too: it shows nothing then."""

    number: Number
    previous_hash: Hash
    hash: Hash
    body: EntryBody | None
    inclusion: InclusionPart


class RootPart(_Part):
    """A root over a list of `size`."""

    size: Count
    root: Hash


class HeadPart(_Part):
    """The journal's last entry, and its way to the journal's root."""

    number: Number
    hash: Hash
    path: Path


class LedgerPart(_Part):
    """How the ledger stood: all receipts by (slot, index, account), and the journal."""

    receipts: RootPart
    journal: RootPart
    head: HeadPart


class AttestationPart(_Part):
    """A signature, in Base64, over the RFC 8785 form of what `statement_of` says."""

    algorithm: Literal["Ed25519"]
    public_key: str
    signature: str


class ProofView(_Part):
    """A proof of credit of one transaction."""

    format: Literal["tempa-proof-of-credit/1"]
    made_at_ms: Milliseconds
    verifier: str = Field(description="The version of Tempa whose rules were applied.")
    signature: str = Field(description="The transaction.")
    treasury: TreasuryPart
    lock_tolerance_seconds: Count
    evidence: list[EvidencePart]
    credits: list[CreditPart]
    quotes: list[QuotePart]
    entries: list[EntryPart]
    ledger: LedgerPart
    attestation: AttestationPart | None


def statement_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is attested: how the ledger stood, of which chain, when, and all that the proof says.

    Raises ValueError or RecursionError for what has no JSON.
    """
    return {
        "format": document["format"],
        "made_at_ms": document["made_at_ms"],
        "cluster": document["treasury"]["cluster"],
        "ledger": document["ledger"],
        "document_sha256": _document_sha256(document),
    }


def _document_sha256(document: Mapping[str, Any]) -> str:
    """Over its JSON in the form of receipts (see `leaves`), without `attestation`; unknown names count."""
    claim = {name: value for name, value in document.items() if name != "attestation"}
    text = json.dumps(claim, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
