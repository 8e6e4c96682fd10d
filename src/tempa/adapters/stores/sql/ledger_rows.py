"""Rows of receipts, allocations and the journal as the settlement slice's values, and back."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql.json_text import decode, encode
from tempa.adapters.stores.sql.settlement_rows import ascii_json, legs_text, plain, time_from
from tempa.core.clock import from_ms
from tempa.settlement.journal import Draft, JournalEntry, Posting
from tempa.settlement.model import Outflow, Part, Receipt
from tempa.settlement.post import Allocation, Flows, LedgerLine, QuotePayment, Recorded
from tempa.settlement.quotes import Price

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tempa.settlement.quotes import Quote

LIMB = 10**10


def receipt_row(receipt: Receipt, evidence: Sequence[Mapping[str, Any]], now: int) -> dict[str, Any]:
    """The columns of a receipt."""
    labels = {
        "references": receipt.references,
        "memos": receipt.memos,
        "parts": [[str(part.amount), part.references] for part in receipt.parts],
    }
    return {
        **_place(receipt, now),
        "payer": None if receipt.payer is None else plain(receipt.payer),
        "labels": ascii_json(labels),
        "evidence": ascii_json(evidence),
    }


def outflow_row(outflow: Outflow, now: int) -> dict[str, Any]:
    """The columns of an outflow."""
    return {**_place(outflow, now), "kind": outflow.kind}


def _place(moved: Receipt | Outflow, now: int) -> dict[str, Any]:
    return {
        "cluster": moved.cluster,
        "signature": moved.signature,
        "asset": moved.asset,
        "account": moved.account,
        "amount": str(moved.amount),
        "slot": moved.slot,
        "tx_index": moved.index,
        "block_time": moved.block_time,
        "posted_at": now,
    }


def receipt_from(row: Mapping[str, Any]) -> Receipt:
    """A row of `receipt`."""
    labels = decode(row["labels"])
    return Receipt(
        cluster=row["cluster"],
        signature=row["signature"],
        asset=row["asset"],
        account=row["account"],
        amount=int(row["amount"]),
        slot=row["slot"],
        index=row["tx_index"],
        block_time=row["block_time"],
        payer=row["payer"],
        references=tuple(labels["references"]),
        memos=tuple(labels["memos"]),
        parts=tuple(Part(int(amount), tuple(references)) for amount, references in labels["parts"]),
    )


def recorded_from(row: Mapping[str, Any], allocations: Iterable[Mapping[str, Any]]) -> Recorded:
    """A row of `receipt` with those of `allocation` that are its."""
    mine = (each for each in allocations if each["receipt_number"] == row["number"])
    return Recorded(
        number=row["number"],
        receipt=receipt_from(row),
        evidence=decode(row["evidence"]),
        posted_at=from_ms(row["posted_at"]),
        allocations=tuple(allocation_from(each) for each in mine),
    )


def allocation_from(row: Mapping[str, Any]) -> Allocation:
    """A row of `allocation` with its quote's account and instance."""
    return Allocation(
        quote_id=row["quote_id"],
        account=row["account"],
        gpu_instance_id=row["gpu_instance_id"],
        amount=int(row["amount"]),
        seconds=row["seconds"],
        expires_at=time_from(row["expires_at"]),
        at=from_ms(row["at"]),
        price=_price_from(row),
    )


def _price_from(row: Mapping[str, Any]) -> Price | None:
    if row["price_numerator"] is None:
        return None
    return Price(int(row["price_numerator"]), int(row["price_denominator"]))


def quote_payment_from(row: Mapping[str, Any]) -> QuotePayment:
    """A row of `payments_of_quote`."""
    return QuotePayment(
        number=row["number"],
        receipt=row["receipt_number"],
        amount=int(row["amount"]),
        seconds=row["seconds"],
        price=Price(int(row["price_numerator"]), int(row["price_denominator"])),
    )


def line_from(row: Mapping[str, Any]) -> LedgerLine:
    """A row of `allocations_after`."""
    return LedgerLine(
        number=row["number"],
        signature=row["signature"],
        slot=row["slot"],
        block_time=row["block_time"],
        payer=row["payer"],
        asset=row["asset"],
        allocation=allocation_from(row),
    )


def paid_quote_row(quote: Quote, now: int, slot: int, *, is_credited: bool) -> dict[str, Any]:
    """What posting writes of a quote."""
    return {
        "id": quote.offer.id,
        "status": quote.status,
        "legs": legs_text(quote.legs),
        "granted_seconds": quote.granted_seconds,
        "now": now,
        "slot": slot,
        "is_credited": int(is_credited),
        "signature": quote.signature,
        "reason": quote.reason,
    }


def entry_row(entry: JournalEntry) -> dict[str, Any]:
    """The columns of a journal entry."""
    return {
        "number": entry.number,
        "kind": entry.draft.kind,
        "key": entry.draft.key,
        "at": entry.draft.at_ms,
        "detail": encode(entry.draft.detail),
        "previous_hash": entry.previous_hash,
        "hash": entry.hash,
    }


def posting_rows(entry: JournalEntry) -> list[dict[str, Any]]:
    """The rows of its lines."""
    return [
        {
            "journal_number": entry.number,
            "line": line,
            "account": posting.account,
            "asset": posting.asset,
            "amount": str(posting.amount),
        }
        for line, posting in enumerate(entry.draft.postings)
    ]


def entries_from(
    rows: Iterable[Mapping[str, Any]], postings: Iterable[Mapping[str, Any]]
) -> list[JournalEntry]:
    """Rows of `journal` with those of `posting`."""
    lines: dict[int, list[Posting]] = defaultdict(list)
    for row in postings:
        lines[row["journal_number"]].append(Posting(row["account"], row["asset"], int(row["amount"])))
    return [_entry(row, lines[row["number"]]) for row in rows]


def _entry(row: Mapping[str, Any], lines: Iterable[Posting]) -> JournalEntry:
    draft = Draft(
        kind=row["kind"],
        key=row["key"],
        at_ms=row["at"],
        postings=tuple(lines),
        detail=decode(row["detail"]),
    )
    return JournalEntry(
        number=row["number"], draft=draft, previous_hash=row["previous_hash"], hash=row["hash"]
    )


def limbs(row: Mapping[str, Any]) -> int:
    """A sum that came in two limbs."""
    return int(row["high"]) * LIMB + int(row["low"])


def flows_from(
    received: Iterable[Mapping[str, Any]], sent: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, str], Flows]:
    """Sums of receipts and outflows, side by side."""
    came = {(row["asset"], row["account"]): limbs(row) for row in received}
    left = {(row["asset"], row["account"]): limbs(row) for row in sent}
    return {key: Flows(came.get(key, 0), left.get(key, 0)) for key in came.keys() | left.keys()}
