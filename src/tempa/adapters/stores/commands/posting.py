"""What one transaction of the store adds to the ledger, gathered so that each table is written once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.adapters.stores.commands.anomalies import note_all
from tempa.adapters.stores.commands.flow import ASK
from tempa.adapters.stores.commands.notices import tell
from tempa.adapters.stores.sql.ledger_rows import entry_row, paid_quote_row, posting_rows
from tempa.adapters.stores.sql.settlement_rows import ascii_json, prices_from, quote_from
from tempa.core.clock import from_ms
from tempa.settlement.anomalies import NewAnomaly, suspense_key
from tempa.settlement.attribution import memo_quotes
from tempa.settlement.events import CREDITED, UNMATCHED, credited, unmatched
from tempa.settlement.journal import GENESIS, Draft, seal
from tempa.settlement.model import QuoteStatus
from tempa.settlement.post import (
    Credit,
    Given,
    Posted,
    allocation_postings,
    attribution_of,
    credit,
    given_detail,
    is_late,
    not_to_be_had,
    receipt_detail,
    receipt_key,
    receipt_postings,
    share_key,
)
from tempa.settlement.quotes import price_in
from tempa.settlement.rentals import GRANT_SECONDS_MAX
from tempa.webhooks.notices import Notice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.settlement.model import Attribution, Outflow, Receipt, Share
    from tempa.settlement.post import Terms
    from tempa.settlement.quotes import Price, PriceOffer, Quote


class Known(NamedTuple):
    """A quote that a payment names, and what its instance costs now."""

    quote: Quote
    prices: tuple[PriceOffer, ...]


class _Taken(NamedTuple):
    """A share that its quote has taken. `expires_at` in milliseconds, None if no whole second was bought."""

    quote: Quote
    amount: int
    seconds: int
    price: Price
    expires_at: int | None


def place_of(moved: Receipt | Outflow) -> tuple[str, str, str, str]:
    """What a receipt is unique by."""
    return moved.cluster, moved.signature, moved.asset, moved.account


def known_quotes(receipts: Iterable[Receipt], quote_ids: Iterable[str] = ()) -> Flow[dict[str, Known]]:
    """All quotes that these receipts name, by id; and these."""
    receipts = list(receipts)
    names = {reference for receipt in receipts for reference in receipt.references}
    ids = {quote_id for receipt in receipts for quote_id in memo_quotes(receipt)} | set(quote_ids)
    if not names and not ids:
        return {}
    rows = yield ASK.quotes_named(names=ascii_json(sorted(names)), ids=ascii_json(sorted(ids)))
    return {row["id"]: Known(quote_from(row), prices_from(row["prices"])) for row in rows}


def _price_then(quote: Quote, receipt: Receipt, prices: tuple[PriceOffer, ...]) -> Flow[Price | None]:
    """What the instance cost when a late payment was made, whenever we came to it; else what it costs now."""
    if receipt.block_time is not None:
        end = 1000 * receipt.block_time + 999  # of the second that the chain tells
        row = yield ASK.prices_at(gpu_instance_id=quote.offer.gpu_instance_id, at=end)
        then = None if row is None else price_in(prices_from(row["prices"]), receipt.asset)
        if then is not None:
            return then
    return price_in(prices, receipt.asset)


class Book:
    """Behind the ledger's lock: what it knows of quotes stays true until it is written."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.drafts: list[Draft] = []
        self.anomalies: list[NewAnomaly] = []
        self.notices: list[tuple[str, Notice]] = []
        self._known: dict[str, Known] = {}
        self._labels: dict[str, str] = {}  # reference -> id
        self._allocations: list[dict[str, Any]] = []
        self._paid: dict[str, dict[str, Any]] = {}

    def know(self, known: Mapping[str, Known]) -> None:
        """Quotes that payments may be for."""
        self._known |= known
        self._labels |= {each.quote.offer.reference: quote_id for quote_id, each in known.items()}

    def attribution(self, receipt: Receipt, terms: Terms) -> Attribution:
        """To which quotes it belongs. Only those that it names are looked at: a batch may name hundreds."""
        quotes = [self._known[quote_id].quote for quote_id in self.named(receipt)]
        return attribution_of(receipt, quotes, terms)

    def named(self, receipt: Receipt) -> list[str]:
        """Ids of the quotes that a receipt names, by reference or memo."""
        named = [self._labels[label] for label in receipt.references if label in self._labels]
        noted = [quote_id for quote_id in sorted(memo_quotes(receipt)) if quote_id in self._known]
        return list(dict.fromkeys([*named, *noted]))

    def post(self, receipt: Receipt, number: int, terms: Terms) -> Flow[Posted]:
        """A receipt that is new: to each quote its share, and the rest into suspense."""
        found = self.attribution(receipt, terms)
        given: list[Given] = []
        if found.reason is not None:
            self._suspend_whole(receipt, number, found.reason, terms)
        for share in found.shares:
            reason = yield from self.give(receipt, number, share.quote_id, share.amount, terms)
            if reason is None:
                given.append(Given(self._known[share.quote_id].quote.offer.account, share.amount))
            else:
                self.suspend(receipt, number, share.amount, reason, share.quote_id, terms)
        self.drafts += self._receipt_drafts(receipt, number, given)
        shares = max(1, len(found.shares))
        return Posted(receipts=1, credits=len(given), suspended=shares - len(given))

    def give(
        self, receipt: Receipt, number: int, quote_id: str, amount: int, terms: Terms
    ) -> Flow[str | None]:
        """Credit a share to its quote and prolong the rental; a code of `reasons` if it has to wait."""
        quote, prices = self._known[quote_id]
        late = is_late(receipt, quote, from_ms(self.now), terms)
        price = (yield from _price_then(quote, receipt, prices)) if late else None
        bought = credit(quote, amount, price, late=late)
        if isinstance(bought, str):
            return bought
        expires_at = yield from self._extend(bought, receipt.signature)
        if isinstance(expires_at, str):
            return expires_at
        paid = replace(bought.quote, signature=receipt.signature)
        self._known[quote_id] = Known(paid, prices)
        self._take(receipt, number, _Taken(paid, amount, bought.seconds, bought.price, expires_at))
        return None

    def allocate(self, receipt: Receipt, share: Share, key: str) -> None:
        """The entry for a share that waited in suspense and was given to its quote now."""
        given = Given(self._known[share.quote_id].quote.offer.account, share.amount)
        self.drafts.append(self._given_draft("allocation", key, receipt, given, self._allocations[-1]))

    def write(self) -> Flow[None]:
        """All of it; the journal last, as its entries seal what is written."""
        yield ASK.insert_allocations(self._allocations)
        yield ASK.write_quotes([self._paid[quote_id] for quote_id in sorted(self._paid)])
        yield from note_all(self.anomalies, self.now)
        yield from tell(self.notices, self.now)
        if not self.drafts:
            return
        end = yield ASK.last_entry()
        number, previous = (0, GENESIS) if end is None else (end["number"], end["hash"])
        entries = []
        for place, draft in enumerate(self.drafts, start=number + 1):
            entries.append(seal(draft, place, previous))
            previous = entries[-1].hash
        yield ASK.insert_postings([row for entry in entries for row in posting_rows(entry)])
        yield ASK.insert_entries([entry_row(entry) for entry in entries])

    def _extend(self, bought: Credit, signature: str) -> Flow[int | str | None]:
        """When the rental ends then, in milliseconds; a code of `reasons` if it cannot be had."""
        offer = bought.quote.offer
        if bought.seconds:
            extended = yield ASK.extend_rental(
                gpu_instance_id=offer.gpu_instance_id,
                account=offer.account,
                seconds=bought.seconds,
                quote_id=offer.id,
                signature=signature,
                latest=self.now + 1000 * GRANT_SECONDS_MAX,
                now=self.now,
            )
            if extended is not None:
                return int(extended["expires_at"])
        renter = yield ASK.renter(gpu_instance_id=offer.gpu_instance_id)
        return not_to_be_had(
            offer.account, renter["account"], bought.seconds, is_suspended=renter["suspended_at"] is not None
        )

    def _take(self, receipt: Receipt, number: int, taken: _Taken) -> None:
        offer = taken.quote.offer
        self._paid[offer.id] = paid_quote_row(taken.quote, self.now, receipt.slot, is_credited=True)
        self._allocations.append(
            {
                "receipt_number": number,
                "quote_id": offer.id,
                "amount": str(taken.amount),
                "seconds": taken.seconds,
                "price_numerator": str(taken.price.numerator),
                "price_denominator": str(taken.price.denominator),
                "expires_at": taken.expires_at,
                "at": self.now,
            }
        )
        if taken.expires_at is not None:
            told = credited(
                gpu_instance_id=offer.gpu_instance_id,
                quote_id=offer.id,
                signature=receipt.signature,
                seconds=taken.seconds,
                expires_at=from_ms(taken.expires_at),
            )
            self.notices.append((offer.account, Notice(CREDITED, told)))

    def suspend(
        self, receipt: Receipt, number: int, amount: int, reason: str, quote_id: str, terms: Terms
    ) -> None:
        """A share that its quote cannot take: kept, shown and told."""
        self._hold(quote_id, receipt, reason)
        self._keep(
            receipt,
            NewAnomaly(
                key=suspense_key(number, quote_id),
                reason=reason,
                receipt=number,
                amount=amount,
                quote_id=quote_id,
            ),
            terms,
        )

    def _suspend_whole(self, receipt: Receipt, number: int, reason: str, terms: Terms) -> None:
        """Money whose quote cannot be told. All that it names say so; of one alone the account is told."""
        named = self.named(receipt)
        for quote_id in named:
            self._hold(quote_id, receipt, reason)
        alone = named[0] if len(named) == 1 else None
        self._keep(
            receipt,
            NewAnomaly(
                key=suspense_key(number, None),
                reason=reason,
                receipt=number,
                amount=receipt.amount,
                quote_id=alone,
            ),
            terms,
        )

    def _keep(self, receipt: Receipt, new: NewAnomaly, terms: Terms) -> None:
        signature, asset, quote_id = receipt.signature, receipt.asset, new.quote_id
        assert new.amount is not None, "it is money that waits"
        told = unmatched(
            signature=signature, asset=asset, amount=new.amount, reason=new.reason, quote_id=quote_id
        )
        account = terms.operator if quote_id is None else self._known[quote_id].quote.offer.account
        self.notices.append((account, Notice(UNMATCHED, told)))
        self.anomalies.append(replace(new, signature=signature, asset=asset, account=receipt.account))

    def _hold(self, quote_id: str, receipt: Receipt, reason: str) -> None:
        """The quote says why money for it waits, unless it was paid: anybody can name it in a transfer."""
        quote, prices = self._known[quote_id]
        if quote.legs:
            return
        held = replace(quote, status=QuoteStatus.SUSPENSE, reason=reason, signature=receipt.signature)
        self._known[quote_id] = Known(held, prices)
        self._paid[quote_id] = paid_quote_row(held, self.now, receipt.slot, is_credited=False)

    def _receipt_drafts(self, receipt: Receipt, number: int, given: list[Given]) -> list[Draft]:
        """One entry; of several accounts' money, one for each share too: each can be shown its own."""
        rows = [row for row in self._allocations if row["receipt_number"] == number]
        if len({part.account for part in given}) <= 1:
            return [self._receipt_draft(receipt, given, rows)]
        drafts = [self._receipt_draft(receipt, (), ())]
        for row, part in zip(rows, given, strict=True):
            key = share_key(receipt, row["quote_id"])
            drafts.append(self._given_draft("share", key, receipt, part, row))
        return drafts

    def _receipt_draft(
        self, receipt: Receipt, given: Sequence[Given], rows: Iterable[Mapping[str, Any]]
    ) -> Draft:
        shares = [[row["quote_id"], row["amount"], row["seconds"]] for row in rows]
        return Draft(
            kind="receipt",
            key=receipt_key(receipt),
            at_ms=self.now,
            postings=receipt_postings(receipt, given),
            detail={**receipt_detail(receipt), "shares": shares},
        )

    def _given_draft(
        self, kind: str, key: str, receipt: Receipt, given: Given, row: Mapping[str, Any]
    ) -> Draft:
        return Draft(
            kind=kind,
            key=key,
            at_ms=self.now,
            postings=allocation_postings(receipt.asset, given),
            detail=given_detail(receipt, row["quote_id"], given.amount, row["seconds"]),
        )
