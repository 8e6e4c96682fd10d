"""Checks a proof of credit from the document alone: all of it is reckoned anew, by the rules of this release.

What it cannot show is that the nodes did not lie, nor that the treasury is the one that was meant to be paid:
compare `treasury` with the address that was paid, and ask a node of your own (`statement` does).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from tempa.core.clock import from_ms
from tempa.settlement.attestation import is_attested
from tempa.settlement.attribution import memo_quotes
from tempa.settlement.journal import (
    Draft,
    JournalEntry,
    Posting,
    customer_account,
    first_broken,
    treasury_account,
)
from tempa.settlement.leaves import receipt_leaf, receipt_of
from tempa.settlement.merkle import leaf_hash, root_by_path
from tempa.settlement.model import Treasury, TreasuryAccount
from tempa.settlement.post import entitled_seconds, receipt_key, with_payment
from tempa.settlement.proof_document import InclusionPart, ProofView, statement_of
from tempa.settlement.quotes import Leg, Price
from tempa.settlement.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tempa.settlement.model import Receipt, Verdict
    from tempa.settlement.proof_document import (
        AllocationPart,
        CreditPart,
        EntryBody,
        EntryPart,
        EvidencePart,
        LedgerPart,
        QuotePart,
        RatePart,
        RootPart,
    )


class Problem(NamedTuple):
    """What is wrong with a proof. `place`: a JSON pointer into it."""

    place: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A proof that holds. `seconds`: granted by it; `nodes` answered; `remarks`: what it cannot show."""

    signature: str
    seconds: int
    nodes: tuple[str, ...]
    receipts_root: str
    remarks: tuple[str, ...]


def check_proof(document: Any, public_key: str | None = None) -> list[Problem] | Checked:
    """Whether a proof holds, or all that is wrong with it.

    `public_key`: of the deployment, in Base64, from elsewhere than the proof: then it has to be signed by it.
    Never raises for what a document can be.
    """
    try:
        proof = ProofView.model_validate(document)
    except ValidationError as error:
        return [_misshapen(fault) for fault in error.errors(include_url=False, include_input=False)]
    check = _Check(proof)
    problems = [*check.problems(), *_attestation_problems(proof, public_key)]
    return problems or check.checked()


def _misshapen(fault: Mapping[str, Any]) -> Problem:
    return Problem("".join(f"/{step}" for step in fault["loc"]), f"This is no proof: {fault['msg']}.")


def _attestation_problems(proof: ProofView, public_key: str | None) -> Iterator[Problem]:
    signed = proof.attestation
    if signed is None:
        if public_key is not None:
            yield Problem("/attestation", "It is not signed.")
        return
    if public_key not in {None, signed.public_key}:
        yield Problem("/attestation/public_key", "It is signed by another key than the one given.")
    elif not is_attested(statement_of(proof), signed.public_key, signed.signature):
        yield Problem("/attestation/signature", "The signature is not of this ledger and this key.")


class _Check:
    """One proof."""

    def __init__(self, proof: ProofView) -> None:
        self._proof = proof
        self._quotes = {quote.id: quote for quote in proof.quotes}
        self._entries = {entry.body.key: entry for entry in proof.entries if entry.body is not None}
        self._remarks: list[str] = []

    def problems(self) -> Iterator[Problem]:
        """All, part by part."""
        proof = self._proof
        if not proof.credits:
            yield Problem("/credits", "It shows no receipt.")
        verdicts: list[tuple[str, Verdict]] = []
        if not proof.evidence:
            yield Problem("/evidence", "No node's answer is included.")
        for place, told in enumerate(proof.evidence):
            verdict = self._verdict(told)
            if isinstance(verdict, str):
                yield Problem(f"/evidence/{place}", verdict)
            else:
                verdicts.append((told.node, verdict))
        for place, credit in enumerate(proof.credits):
            yield from self._credit(f"/credits/{place}", credit, verdicts)
        for place, entry in enumerate(proof.entries):
            yield from self._entry(f"/entries/{place}", entry)
        for place, quote in enumerate(proof.quotes):
            yield from _quote(f"/quotes/{place}", quote)
        yield from _head(proof.ledger)

    def checked(self) -> Checked:
        """What it shows, once no problem was found."""
        proof = self._proof
        if proof.attestation is None:
            self._remarks.append("It is not signed: that the ledger stood so is nobody's word.")
        return Checked(
            signature=proof.signature,
            seconds=sum(part.seconds for credit in proof.credits for part in credit.allocations),
            nodes=tuple(told.node for told in proof.evidence),
            receipts_root=proof.ledger.receipts.root,
            remarks=tuple(dict.fromkeys(self._remarks)),
        )

    def _verdict(self, told: EvidencePart) -> Verdict | str:
        if hashlib.sha256(told.answer.encode("utf-8", "surrogatepass")).hexdigest() != told.sha256:
            return "The answer is not the one whose hash stands beside it."
        try:
            answer = json.loads(told.answer)
        except (ValueError, RecursionError):
            return "The answer is no JSON."
        verdict = verify(answer, self._treasury(), self._proof.signature)
        if verdict.reason is not None:
            return f"By this answer nothing was paid: {verdict.reason}."
        return verdict

    def _treasury(self) -> Treasury:
        rows = (
            TreasuryAccount(
                asset=row.asset,
                address=row.address,
                owner=row.owner,
                program=row.program,
                decimals=row.decimals,
                extensions=frozenset(row.extensions),
            )
            for row in self._proof.treasury.accounts
        )
        return Treasury(cluster=self._proof.treasury.cluster, accounts=tuple(rows))

    def _credit(
        self, place: str, credit: CreditPart, verdicts: Sequence[tuple[str, Verdict]]
    ) -> Iterator[Problem]:
        receipt = receipt_of(credit.receipt.model_dump())
        if receipt.signature != self._proof.signature:
            yield Problem(f"{place}/receipt/signature", "The receipt is another transaction's.")
        for node, verdict in verdicts:
            words = _difference(receipt, verdict)
            if words is not None:
                yield Problem(f"{place}/receipt", f"By the answer of {node}, {words}.")
        yield from _included(
            place, leaf_hash(receipt_leaf(receipt)), credit.inclusion, self._proof.ledger.receipts
        )
        yield from self._booked(place, receipt, credit)
        given = sum(int(part.amount) for part in credit.allocations)
        if given > receipt.amount:
            yield Problem(f"{place}/allocations", f"{given} were given of {receipt.amount} that came in.")
        for number, part in enumerate(credit.allocations):
            yield from self._allocation(f"{place}/allocations/{number}", part, receipt, credit)

    def _booked(self, place: str, receipt: Receipt, credit: CreditPart) -> Iterator[Problem]:
        """The receipt's entry says the same: how much came, and what was given to whom at once."""
        entry = self._entries.get(receipt_key(receipt))
        if entry is None or entry.body is None:
            if all(each.body is not None for each in self._proof.entries):
                yield Problem(place, "No entry of the journal tells of the receipt.")
            else:
                self._remarks.append("An entry tells of other accounts too, so its hash is only shown.")
            return
        body = entry.body
        if [treasury_account(receipt.asset), receipt.asset, str(receipt.amount)] not in body.postings:
            yield Problem(place, "Its entry books another amount than the receipt's.")
        told = {name: body.detail.get(name) for name in ("signature", "slot", "account")}
        if told != {"signature": receipt.signature, "slot": receipt.slot, "account": receipt.account}:
            yield Problem(place, "Its entry tells of another transaction, slot or account.")
        yield from self._shares(place, body, receipt, credit)

    def _shares(self, place: str, body: EntryBody, receipt: Receipt, credit: CreditPart) -> Iterator[Problem]:
        """Each allocation stands in the receipt's entry, or in one of its own: it came out of suspense."""
        shares = body.detail.get("shares")
        booked = (
            [tuple(share) for share in shares if isinstance(share, list)] if isinstance(shares, list) else []
        )
        for number, part in enumerate(credit.allocations):
            at = f"{place}/allocations/{number}"
            share = (part.quote_id, part.amount, part.seconds)
            if share in booked and _posting(part, receipt) in body.postings:
                booked.remove(share)
                yield from self._named(at, part, receipt)
            elif self._allocated_later(part, receipt):
                self._remarks.append(f"{part.amount} of it came to {part.quote_id} out of suspense.")
            else:
                yield Problem(at, "No entry of the journal tells of it.")

    def _named(self, place: str, part: AllocationPart, receipt: Receipt) -> Iterator[Problem]:
        """What is given at once is given by reference or memo."""
        quote = self._quotes.get(part.quote_id)
        named = quote is not None and quote.reference in receipt.references
        if not named and part.quote_id not in memo_quotes(receipt):
            yield Problem(place, f"The payment does not name {part.quote_id}.")

    def _allocated_later(self, part: AllocationPart, receipt: Receipt) -> bool:
        told = {"signature": receipt.signature, "quote_id": part.quote_id, "amount": part.amount}
        bodies = (entry.body for entry in self._entries.values() if entry.body is not None)
        return any(
            body.kind == "allocation" and body.detail == told and _posting(part, receipt) in body.postings
            for body in bodies
        )

    def _entry(self, place: str, entry: EntryPart) -> Iterator[Problem]:
        ledger = self._proof.ledger
        if entry.body is not None and not _holds(entry):
            yield Problem(place, "The entry's hash is not of what it says, or it does not sum to zero.")
        yield from _included(place, leaf_hash(bytes.fromhex(entry.hash)), entry.inclusion, ledger.journal)
        if entry.inclusion.index != entry.number - 1:
            yield Problem(place, "It lies elsewhere in the journal than its number says.")

    def _allocation(
        self, place: str, part: AllocationPart, receipt: Receipt, credit: CreditPart
    ) -> Iterator[Problem]:
        quote = self._quotes.get(part.quote_id)
        if quote is None:
            yield Problem(place, "The terms of its quote are not included.")
            return
        if quote.asset != receipt.asset:
            yield Problem(place, "Its quote is in another asset.")
        yield from _seconds(place, part)
        yield from self._priced(place, part, quote, credit)

    def _priced(
        self, place: str, part: AllocationPart, quote: QuotePart, credit: CreditPart
    ) -> Iterator[Problem]:
        """In time at the quote's price; the list of prices, by which a late one goes, is the operator's."""
        block_time = credit.receipt.block_time
        paid_at = credit.posted_at_ms // 1000 if block_time is None else block_time
        if paid_at <= quote.expires_at_ms // 1000 + self._proof.lock_tolerance_seconds:
            if _price(part.price) != _price(quote.price):
                yield Problem(f"{place}/price", "It came in time, and was not taken at the quote's price.")
            return
        end = from_ms(quote.expires_at_ms).isoformat(timespec="seconds")
        rate = f"{part.price.numerator}/{part.price.denominator}"
        self._remarks.append(f"It came after the price lock of {quote.id} ({end}), so at {rate} s a unit.")


def _posting(part: AllocationPart, receipt: Receipt) -> list[str]:
    """The line that says that it is owed to its account now."""
    return [customer_account(part.account), receipt.asset, str(-int(part.amount))]


def _holds(entry: EntryPart) -> bool:
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


def _difference(receipt: Receipt, verdict: Verdict) -> str | None:
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


def _included(place: str, leaf: bytes, shown: InclusionPart, root: RootPart) -> Iterator[Problem]:
    path = [bytes.fromhex(each) for each in shown.path]
    found = root_by_path(leaf, shown.index, root.size, path)
    if found is None or found.hex() != root.root:
        yield Problem(f"{place}/inclusion", "The path does not lead from it to the root.")


def _head(ledger: LedgerPart) -> Iterator[Problem]:
    """The last entry lies at the end of the journal whose root is shown."""
    head = ledger.head
    if head.number != ledger.journal.size:
        yield Problem("/ledger/head/number", "The journal has another number of entries.")
    shown = InclusionPart(index=head.number - 1, path=head.path)
    yield from _included("/ledger/head", leaf_hash(bytes.fromhex(head.hash)), shown, ledger.journal)


def _price(rate: RatePart) -> Price:
    return Price.of(rate.numerator, rate.denominator)


def _seconds(place: str, part: AllocationPart) -> Iterator[Problem]:
    """All that the quote was paid buys whole seconds together: what is left of one is carried."""
    legs = [Leg(_price(leg.price), int(leg.paid)) for leg in part.earlier.legs]
    before = entitled_seconds(legs)
    if before != part.earlier.seconds:
        words = f"What was paid before buys {before} s and not {part.earlier.seconds}."
        yield Problem(f"{place}/earlier/seconds", words)
    bought = entitled_seconds(with_payment(legs, _price(part.price), int(part.amount))) - before
    if bought != part.seconds:
        yield Problem(f"{place}/seconds", f"It buys {bought} s and not {part.seconds}.")


def _quote(place: str, quote: QuotePart) -> Iterator[Problem]:
    amount = _price(quote.price).amount_for(quote.seconds)
    if amount != int(quote.amount):
        yield Problem(f"{place}/amount", f"At its price {quote.seconds} s cost {amount}.")
