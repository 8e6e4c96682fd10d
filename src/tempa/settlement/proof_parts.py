"""The parts of a proof of credit, each judged by itself: what is wrong with it, in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tempa.settlement.journal import Draft, JournalEntry, Posting, first_broken
from tempa.settlement.leaves import receipt_of
from tempa.settlement.merkle import leaf_hash, root_by_path
from tempa.settlement.post import entitled_seconds, receipt_key, with_payment
from tempa.settlement.proof_document import InclusionPart
from tempa.settlement.quotes import Leg, Price

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.settlement.model import Receipt, Verdict
    from tempa.settlement.proof_document import (
        AllocationPart,
        EntryPart,
        LedgerPart,
        ProofView,
        QuotePart,
        RatePart,
        RootPart,
    )


class Problem(NamedTuple):
    """What is wrong with a proof. `place`: a JSON pointer into it."""

    place: str
    words: str


def repeated(proof: ProofView) -> Iterator[Problem]:
    """What stands twice would count twice, or hide what the other one says."""
    named: dict[str, Sequence[object]] = {
        "evidence": [told.node for told in proof.evidence],
        "credits": [receipt_key(receipt_of(each.receipt.model_dump())) for each in proof.credits],
        "quotes": [quote.id for quote in proof.quotes],
        "entries": [entry.number for entry in proof.entries],
        "treasury/accounts": [(row.asset, row.address) for row in proof.treasury.accounts],
    }
    for name, keys in named.items():
        seen: set[object] = set()
        for place, key in enumerate(keys):
            if key in seen:
                yield Problem(f"/{name}/{place}", "It stands there twice.")
            seen.add(key)
    shown = [entry.body.key for entry in proof.entries if entry.body is not None]
    if len(shown) != len(set(shown)):
        yield Problem("/entries", "Two entries have one key.")


def is_sealed(entry: EntryPart) -> bool:
    """The hash, and that debits and credits are equal."""
    assert entry.body is not None, "only what is shown can be hashed"
    body = entry.body
    try:
        postings = tuple(Posting(account, asset, int(amount)) for account, asset, amount in body.postings)
        draft = Draft(kind=body.kind, key=body.key, at_ms=body.at_ms, postings=postings, detail=body.detail)
        whole = JournalEntry(
            number=entry.number, draft=draft, previous_hash=entry.previous_hash, hash=entry.hash
        )
        return first_broken([whole], entry.previous_hash) is None
    except (ValueError, RecursionError):  # no number, or nothing that has a canonical form
        return False


def difference(receipt: Receipt, verdict: Verdict) -> str | None:
    """In words. What a node does not tell (payer, index, time) is no difference."""
    same = (one for one in verdict.receipts if (one.asset, one.account) == (receipt.asset, receipt.account))
    found = next(same, None)
    if found is None:
        return "this account received none of this asset"
    if found.amount != receipt.amount:
        return f"{found.amount} came in and not {receipt.amount}"
    if found.slot != receipt.slot:
        return f"it is of slot {found.slot} and not {receipt.slot}"
    for name in ("index", "block_time", "payer"):
        told, kept = getattr(found, name), getattr(receipt, name)
        if None not in {told, kept} and told != kept:
            return f"its {name.replace('_', ' ')} is {told} and not {kept}"
    untold = {name: getattr(receipt, name) for name in ("index", "block_time", "payer")}
    if replace(found, **untold) != receipt:
        return "it names other references or memos, or consists of other transfers"
    return None


def not_included(place: str, leaf: bytes, shown: InclusionPart, root: RootPart) -> Iterator[Problem]:
    """Where the path of a leaf does not lead to the root."""
    path = [bytes.fromhex(each) for each in shown.path]
    found = root_by_path(leaf, shown.index, root.size, path)
    if found is None or found.hex() != root.root:
        yield Problem(f"{place}/inclusion", "The path does not lead from it to the root.")


def wrong_head(ledger: LedgerPart) -> Iterator[Problem]:
    """The last entry lies at the end of the journal whose root is shown."""
    head = ledger.head
    if head.number != ledger.journal.size:
        yield Problem("/ledger/head/number", "The journal has another number of entries.")
    shown = InclusionPart(index=head.number - 1, path=head.path)
    yield from not_included("/ledger/head", leaf_hash(bytes.fromhex(head.hash)), shown, ledger.journal)


def price_of(rate: RatePart) -> Price:
    """Of its two numbers."""
    return Price.of(rate.numerator, rate.denominator)


def wrong_seconds(place: str, part: AllocationPart) -> Iterator[Problem]:
    """All that the quote was paid buys whole seconds together: what is left of one is carried."""
    legs = [Leg(price_of(leg.price), int(leg.paid)) for leg in part.earlier.legs]
    before = entitled_seconds(legs)
    if before != part.earlier.seconds:
        words = f"What was paid before buys {before} s and not {part.earlier.seconds}."
        yield Problem(f"{place}/earlier/seconds", words)
    bought = entitled_seconds(with_payment(legs, price_of(part.price), int(part.amount))) - before
    if bought != part.seconds:
        yield Problem(f"{place}/seconds", f"It buys {bought} s and not {part.seconds}.")


def wrong_terms(place: str, quote: QuotePart) -> Iterator[Problem]:
    """Where the time that it offers costs another amount at its price."""
    amount = price_of(quote.price).amount_for(quote.seconds)
    if amount != int(quote.amount):
        yield Problem(f"{place}/amount", f"At its price {quote.seconds} s cost {amount}.")
