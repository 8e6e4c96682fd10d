"""Checks a proof of credit from the document alone: all of it is reckoned anew, by the rules of this release.

What it cannot show is that the nodes did not lie, nor that the treasury is the one that was meant to be paid:
compare `treasury` with the address that was paid, and ask a node of your own (`statement` does).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tempa.core.clock import from_ms
from tempa.settlement.attestation import is_attested
from tempa.settlement.attribution import memo_quotes
from tempa.settlement.journal import customer_account, treasury_account
from tempa.settlement.leaves import receipt_leaf, receipt_of
from tempa.settlement.merkle import leaf_hash
from tempa.settlement.model import Treasury, TreasuryAccount
from tempa.settlement.post import given_detail, receipt_detail, receipt_key, share_key
from tempa.settlement.proof_document import ProofView, statement_of
from tempa.settlement.proof_parts import (
    Problem,
    difference,
    is_sealed,
    not_included,
    price_of,
    repeated,
    wrong_head,
    wrong_seconds,
    wrong_terms,
)
from tempa.settlement.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tempa.settlement.model import Receipt, Verdict
    from tempa.settlement.proof_document import (
        AllocationPart,
        AttestationPart,
        CreditPart,
        EntryBody,
        EntryPart,
        EvidencePart,
        QuotePart,
    )


_UNSIGNED = (
    "No key was given: the quote's terms, and so the price, and that the ledger stood so are the document's "
    "own word. Give the server's public key (--key), had from elsewhere, and nothing in it can be altered."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A proof that holds. `seconds`: granted by it; `nodes` answered; `remarks`: what it cannot show.

    `signed_by`: the key that was given, so that nothing in it was altered; None: none was, and what no answer
    and no hash in it depends on (above all the quote's terms, and so the price) is the document's own word.
    """

    signature: str
    seconds: int
    nodes: tuple[str, ...]
    receipts_root: str
    remarks: tuple[str, ...]
    signed_by: str | None = None


def check_proof(document: Any, public_key: str | None = None) -> list[Problem] | Checked:
    """Whether a proof holds, or all that is wrong with it.

    `public_key`: of the deployment, in Base64, from elsewhere than the proof: then it has to be signed by it,
    all that it says. Without it a proof can only be found to agree with itself.
    Never raises for what a document can be.
    """
    try:
        proof = ProofView.model_validate(document)
    except ValidationError as error:
        return [_misshapen(fault) for fault in error.errors(include_url=False, include_input=False)]
    check = _Check(proof)
    problems = [*check.problems(), *_attestation_problems(document, proof.attestation, public_key)]
    return problems or check.checked(public_key)


def _misshapen(fault: Mapping[str, Any]) -> Problem:
    return Problem("".join(f"/{step}" for step in fault["loc"]), f"This is no proof: {fault['msg']}.")


def _attestation_problems(
    document: Mapping[str, Any], signed: AttestationPart | None, public_key: str | None
) -> Iterator[Problem]:
    if signed is None:
        if public_key is not None:
            yield Problem("/attestation", "It is not signed.")
        return
    if public_key not in {None, signed.public_key}:
        yield Problem("/attestation/public_key", "It is signed by another key than the one given.")
    elif not _is_signed(document, signed):
        yield Problem("/attestation/signature", "The signature is not of this document and this key.")


def _is_signed(document: Mapping[str, Any], signed: AttestationPart) -> bool:
    try:
        return is_attested(statement_of(document), signed.public_key, signed.signature)
    except (ValueError, RecursionError):  # what is unknown in it has no JSON
        return False


class _Check:
    """One proof."""

    def __init__(self, proof: ProofView) -> None:
        self._proof = proof
        self._quotes = {quote.id: quote for quote in proof.quotes}
        self._entries = {entry.body.key: entry for entry in proof.entries if entry.body is not None}
        self._unused = set(self._entries)  # each tells of one credit
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
            yield from wrong_terms(f"/quotes/{place}", quote)
        yield from repeated(proof)
        yield from wrong_head(proof.ledger)

    def checked(self, public_key: str | None) -> Checked:
        """What it shows, once no problem was found."""
        proof = self._proof
        if proof.attestation is None:
            self._remarks.append("It is not signed: that the ledger stood so is nobody's word.")
        if public_key is None:
            self._remarks.append(_UNSIGNED)
        return Checked(
            signature=proof.signature,
            seconds=sum(part.seconds for credit in proof.credits for part in credit.allocations),
            nodes=tuple(told.node for told in proof.evidence),
            receipts_root=proof.ledger.receipts.root,
            remarks=tuple(dict.fromkeys(self._remarks)),
            signed_by=public_key,
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
            words = difference(receipt, verdict)
            if words is not None:
                yield Problem(f"{place}/receipt", f"By the answer of {node}, {words}.")
        yield from not_included(
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
        body = self._told(receipt_key(receipt))
        if body is None or body.kind != "receipt":
            yield Problem(place, "No entry of the journal that can be read tells of the receipt.")
            return
        if [treasury_account(receipt.asset), receipt.asset, str(receipt.amount)] not in body.postings:
            yield Problem(place, "Its entry books another amount than the receipt's.")
        expected = receipt_detail(receipt)
        if {name: body.detail.get(name) for name in expected} != expected:
            yield Problem(place, "Its entry tells of another transaction, slot or account.")
        yield from self._shares(place, body, receipt, credit)

    def _shares(self, place: str, body: EntryBody, receipt: Receipt, credit: CreditPart) -> Iterator[Problem]:
        """Each allocation stands in the receipt's entry or in one of its own, and none stands for two.

        It has its own where other accounts have a share of the receipt, and where it came out of suspense.
        """
        shares = body.detail.get("shares")
        booked = (
            [tuple(share) for share in shares if isinstance(share, list)] if isinstance(shares, list) else []
        )
        for number, part in enumerate(credit.allocations):
            at = f"{place}/allocations/{number}"
            share = (part.quote_id, part.amount, part.seconds)
            if share in booked and _posting(part, receipt) in body.postings:
                booked.remove(share)
                kind: str | None = "receipt"
            else:
                kind = self._kind_of_own_entry(part, receipt)
            if kind is None:
                yield Problem(at, "No entry of the journal tells of it.")
            elif kind == "allocation":
                self._remarks.append(f"{part.amount} of it came to {part.quote_id} out of suspense.")
            else:
                yield from self._named(at, part, receipt)

    def _named(self, place: str, part: AllocationPart, receipt: Receipt) -> Iterator[Problem]:
        """What is given at once is given by reference or memo."""
        quote = self._quotes.get(part.quote_id)
        named = quote is not None and quote.reference in receipt.references
        if not named and part.quote_id not in memo_quotes(receipt):
            yield Problem(place, f"The payment does not name {part.quote_id}.")

    def _kind_of_own_entry(self, part: AllocationPart, receipt: Receipt) -> str | None:
        detail = given_detail(receipt, part.quote_id, int(part.amount), part.seconds)
        for key in sorted(self._unused):
            body = self._told(key)
            if body is None or body.detail != detail or _posting(part, receipt) not in body.postings:
                continue
            if body.kind == "allocation" or (body.kind, key) == ("share", share_key(receipt, part.quote_id)):
                self._unused.discard(key)
                return body.kind
        return None

    def _told(self, key: str) -> EntryBody | None:
        """What the entry of this key says, if that is shown."""
        entry = self._entries.get(key)
        return None if entry is None else entry.body

    def _entry(self, place: str, entry: EntryPart) -> Iterator[Problem]:
        ledger = self._proof.ledger
        if entry.body is not None and not is_sealed(entry):
            yield Problem(place, "The entry's hash is not of what it says, or it does not sum to zero.")
        yield from not_included(place, leaf_hash(bytes.fromhex(entry.hash)), entry.inclusion, ledger.journal)
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
        yield from wrong_seconds(place, part)
        yield from self._priced(place, part, quote, credit)

    def _priced(
        self, place: str, part: AllocationPart, quote: QuotePart, credit: CreditPart
    ) -> Iterator[Problem]:
        """In time at the quote's price; the list of prices, by which a late one goes, is the operator's."""
        block_time = credit.receipt.block_time
        paid_at = credit.posted_at_ms // 1000 if block_time is None else block_time
        if paid_at <= quote.expires_at_ms // 1000 + self._proof.lock_tolerance_seconds:
            if price_of(part.price) != price_of(quote.price):
                yield Problem(f"{place}/price", "It came in time, and was not taken at the quote's price.")
            return
        end = from_ms(quote.expires_at_ms).isoformat(timespec="seconds")
        rate = f"{part.price.numerator}/{part.price.denominator}"
        self._remarks.append(f"It came after the price lock of {quote.id} ({end}), so at {rate} s a unit.")


def _posting(part: AllocationPart, receipt: Receipt) -> list[str]:
    """The line that says that it is owed to its account now."""
    return [customer_account(part.account), receipt.asset, str(-int(part.amount))]
