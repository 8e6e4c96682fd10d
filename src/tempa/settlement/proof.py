"""Proofs of credit: a document that shows by itself what was paid, what it bought, and where that stands."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tempa.core.clock import to_ms
from tempa.core.errors import Refusal
from tempa.settlement.journal import customer_account
from tempa.settlement.leaves import EntryLeaves, ReceiptLeaves, receipt_document, receipt_place
from tempa.settlement.post import receipt_key, share_key, with_payment
from tempa.settlement.proof_document import FORMAT, ProofView, statement_of
from tempa.settlement.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tempa.core.clock import Clock
    from tempa.settlement.attestation import Attestor
    from tempa.settlement.journal import JournalEntry
    from tempa.settlement.model import Treasury
    from tempa.settlement.ports import ReceiptPlace, SettlementStore
    from tempa.settlement.post import Allocation, LedgerEnds, QuotePayment, Recorded, Terms
    from tempa.settlement.quotes import Leg, Price, Quote
    from tempa.settlement.tree import Inclusion

_PAGE_PAYMENTS = 1000


@dataclass(kw_only=True)
class Proofs:
    """Makes proofs. Belongs to one event loop; keeps the roots of what it has read (see `tree`).

    - `treasury` gives what is watched, None while that is not known yet. Is None where no payments are taken.
    - `version`: of Tempa.
    - `attestor`: signs the proof, and with it how the ledger stands; None: nobody does.
    """

    store: SettlementStore
    treasury: Callable[[], Treasury | None] | None
    terms: Terms
    clock: Clock
    version: str
    attestor: Attestor | None = None
    _receipts: Tree[ReceiptPlace] = field(init=False)
    _entries: Tree[int] = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is read yet."""
        self._receipts = Tree(ReceiptLeaves(self.store))
        self._entries = Tree(EntryLeaves(self.store))

    async def proof(self, signature: str, account: str | None = None) -> dict[str, Any] | None:
        """Of what a transaction has paid; of an `account`, only the receipts that it was given a part of.

        None: nothing came in by it. Raises `Refusal` (`payments-not-configured`, `treasury-unknown`) and
        `StoreUnavailable`.
        """
        recorded = [one for one in await self.store.receipts_of(signature) if _concerns(one, account)]
        if not recorded:
            return None
        treasury = self._known_treasury()
        entries = await self._entries_of(signature, recorded, account)
        ends = await self.store.ledger_ends()  # behind all that was read so far
        quotes = await self._quotes_of(recorded, account)
        document = {
            "format": FORMAT,
            "made_at_ms": to_ms(self.clock.now()),
            "verifier": self.version,
            "signature": signature,
            "treasury": _treasury_part(treasury),
            "lock_tolerance_seconds": self.terms.lock_tolerance_seconds,
            "evidence": [_evidence_part(each) for each in recorded[0].evidence],
            "credits": [await self._credit_part(one, account, ends) for one in recorded],
            "quotes": [_quote_part(quote) for quote in quotes],
            "entries": [await self._entry_part(entry, account, ends) for entry in entries],
            "ledger": await self._ledger_part(ends),
            "attestation": None,
        }
        return self._attested(document)

    def _known_treasury(self) -> Treasury:
        if self.treasury is None:
            raise Refusal(
                "payments-not-configured",
                "A proof shows the treasury's accounts; this server has none. See solana.treasury.",
            )
        treasury = self.treasury()
        if treasury is None:
            raise Refusal("treasury-unknown", "The treasury's accounts were not looked at on the chain yet.")
        return treasury

    async def _entries_of(
        self, signature: str, recorded: Iterable[Recorded], account: str | None
    ) -> list[JournalEntry]:
        """That of each receipt, of each share of several accounts', and of what came out of suspense."""
        keys = [receipt_key(one.receipt) for one in recorded]
        keys += [share_key(one.receipt, part.quote_id) for one in recorded for part in _given(one, account)]
        quotes = {part.quote_id for one in recorded for part in _given(one, account)}
        numbers = {one.number for one in recorded}
        for anomaly in await self.store.anomalies_of(signature):
            if anomaly.receipt in numbers:
                keys += [f"allocation:{anomaly.id}:{quote_id}" for quote_id in sorted(quotes)]
        return await self.store.entries(keys)

    async def _quotes_of(self, recorded: Iterable[Recorded], account: str | None) -> list[Quote]:
        owners = {part.quote_id: part.account for one in recorded for part in _given(one, account)}
        found = [await self.store.quote(owner, quote_id) for quote_id, owner in sorted(owners.items())]
        return [quote for quote in found if quote is not None]

    async def _credit_part(self, one: Recorded, account: str | None, ends: LedgerEnds) -> dict[str, Any]:
        included = await self._receipts.inclusion(receipt_place(one.receipt), ends.receipt)
        assert included is not None, "the ledger is only added to"
        return {
            "receipt": receipt_document(one.receipt),
            "posted_at_ms": to_ms(one.posted_at),
            "allocations": await self._allocation_parts(one, account),
            "inclusion": _inclusion_part(included),
        }

    async def _allocation_parts(self, one: Recorded, account: str | None) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        given = _given(one, account)
        for quote_id in dict.fromkeys(part.quote_id for part in given):
            mine = (part for part in given if part.quote_id == quote_id)
            parts += await self._allocations_to(quote_id, one.number, mine)
        return parts

    async def _allocations_to(
        self, quote_id: str, receipt: int, mine: Iterable[Allocation]
    ) -> list[dict[str, Any]]:
        """With what the quote was paid before each; both are in the order in which they happened."""
        waiting = list(mine)
        parts: list[dict[str, Any]] = []
        legs: tuple[Leg, ...] = ()
        seconds = after = 0
        while waiting:
            payments = await self.store.payments_of_quote(quote_id, after, _PAGE_PAYMENTS)
            for payment in payments:
                if payment.receipt == receipt and waiting:
                    parts.append(_allocation_part(waiting.pop(0), payment, legs, seconds))
                legs = with_payment(legs, payment.price, payment.amount)
                seconds += payment.seconds
            assert payments, "each allocation is one of its quote's payments"
            after = payments[-1].number
        return parts

    async def _entry_part(self, entry: JournalEntry, account: str | None, ends: LedgerEnds) -> dict[str, Any]:
        included = await self._entries.inclusion(entry.number, ends.entry)
        assert included is not None, "the journal is only added to"
        return {
            "number": entry.number,
            "previous_hash": entry.previous_hash,
            "hash": entry.hash,
            "body": _body_part(entry) if account is None or _is_alone(entry, account) else None,
            "inclusion": _inclusion_part(included),
        }

    async def _ledger_part(self, ends: LedgerEnds) -> dict[str, Any]:
        receipts, receipts_size = await self._receipts.root(ends.receipt)
        journal, journal_size = await self._entries.root(ends.entry)
        ((number, last),) = await self.store.entry_hashes(ends.entry - 1, ends.entry, 1)
        included = await self._entries.inclusion(number, ends.entry)
        assert included is not None, "the journal is only added to"
        return {
            "receipts": {"size": receipts_size, "root": receipts.hex()},
            "journal": {"size": journal_size, "root": journal.hex()},
            "head": {"number": number, "hash": last, "path": [each.hex() for each in included.path]},
        }

    def _attested(self, document: dict[str, Any]) -> dict[str, Any]:
        ProofView.model_validate(document)
        if self.attestor is not None:
            document["attestation"] = self.attestor.attest(statement_of(document))
        return document


def _given(one: Recorded, account: str | None) -> list[Allocation]:
    return [part for part in one.allocations if account in {None, part.account}]


def _concerns(one: Recorded, account: str | None) -> bool:
    return account is None or bool(_given(one, account))


def _is_alone(entry: JournalEntry, account: str) -> bool:
    """Whether it tells of nobody else: that others were paid by it is not the account's business."""
    mine = customer_account(account)
    prefix = customer_account("")
    return all(line.account == mine or not line.account.startswith(prefix) for line in entry.draft.postings)


def _treasury_part(treasury: Treasury) -> dict[str, Any]:
    rows = [
        {
            "asset": row.asset,
            "address": row.address,
            "owner": row.owner,
            "program": row.program,
            "decimals": row.decimals,
            "extensions": sorted(row.extensions),
        }
        for row in treasury.accounts
    ]
    return {"cluster": treasury.cluster, "accounts": rows}


def _evidence_part(told: Mapping[str, Any]) -> dict[str, Any]:
    answer = json.dumps(told["answer"], separators=(",", ":"))
    return {
        "node": told["node"],
        "answer": answer,
        "sha256": hashlib.sha256(answer.encode()).hexdigest(),
    }


def _rate_part(price: Price) -> dict[str, int]:
    return {"numerator": price.numerator, "denominator": price.denominator}


def _allocation_part(
    part: Allocation, payment: QuotePayment, legs: Sequence[Leg], seconds: int
) -> dict[str, Any]:
    earlier = [{"price": _rate_part(leg.price), "paid": str(leg.paid)} for leg in legs]
    return {
        "quote_id": part.quote_id,
        "account": part.account,
        "amount": str(payment.amount),
        "seconds": payment.seconds,
        "price": _rate_part(payment.price),
        "earlier": {"legs": earlier, "seconds": seconds},
    }


def _quote_part(quote: Quote) -> dict[str, Any]:
    offer = quote.offer
    return {
        "id": offer.id,
        "gpu_instance_id": offer.gpu_instance_id,
        "asset": offer.asset,
        "decimals": offer.decimals,
        "reference": offer.reference,
        "amount": str(offer.amount),
        "seconds": offer.seconds,
        "price": _rate_part(offer.price),
        "created_at_ms": to_ms(offer.created_at),
        "expires_at_ms": to_ms(offer.expires_at),
    }


def _body_part(entry: JournalEntry) -> dict[str, Any]:
    draft = entry.draft
    return {
        "kind": draft.kind,
        "key": draft.key,
        "at_ms": draft.at_ms,
        "postings": [[line.account, line.asset, str(line.amount)] for line in draft.postings],
        "detail": dict(draft.detail),
    }


def _inclusion_part(included: Inclusion) -> dict[str, Any]:
    return {"index": included.at, "path": [each.hex() for each in included.path]}
