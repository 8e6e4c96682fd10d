"""Contract of quotes: kept as they were offered, seen by their account only, followed to their credit."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.settlement.model import QuoteStatus
from tempa.settlement.quotes import Closed, Price, PriceOffer, Progress, Quote, QuoteSighting
from tempa.testing.contracts.samples import OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import (
    HOUR,
    LAMPORTS,
    LOCK_SECONDS,
    a_quote,
    a_signature,
    an_instance,
    an_offer,
    pay,
    the_quote,
)

if TYPE_CHECKING:
    from tempa.settlement.quotes import NewQuote
    from tempa.testing.contracts.bench import StoreBench


def seen(quote: NewQuote, slot: int, *, is_final: bool = False, by_memo: bool = False) -> QuoteSighting:
    """A transaction that names it."""
    return QuoteSighting(
        name="" if by_memo else quote.reference,
        quote_id=quote.id if by_memo else "",
        slot=slot,
        signature=a_signature(),
        is_final=is_final,
    )


class QuoteContract:
    """Making, looking and following."""

    async def test_a_quote_is_kept_as_it_was_offered(self, bench: StoreBench) -> None:
        price = Price.of(3_600, 2**64 - 1)
        gpu = await an_instance(bench, PriceOffer("SOL", 2**64 - 1, 3_600))
        offer = an_offer(bench, gpu, price=price, treasury=LAMPORTS)
        assert offer.amount == 2**64 - 1

        assert await bench.store.open_quote(offer) == Quote(offer=offer, status=QuoteStatus.OPEN)
        assert await the_quote(bench, offer) == Quote(offer=offer, status=QuoteStatus.OPEN)
        assert await bench.store.quote(OTHER_ACCOUNT, offer.id) is None

    async def test_quotes_are_listed_newest_first(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        made = [(await a_quote(bench, gpu)).id for _ in range(3)]
        await a_quote(bench, gpu, account=OTHER_ACCOUNT)

        first = await bench.store.quotes("acme", 2, None)
        rest = await bench.store.quotes("acme", 2, first[-1].offer.id)

        assert [quote.offer.id for quote in first + rest] == made[::-1]

    async def test_there_is_no_quote_for_what_cannot_be_rented(self, bench: StoreBench) -> None:
        rented, suspended = await an_instance(bench), await an_instance(bench)
        await pay(bench, await a_quote(bench, rented), 7_200)
        await bench.store.suspend_instance(suspended)

        async def refused(gpu: str, account: str) -> Quote | Closed:
            return await bench.store.open_quote(an_offer(bench, gpu, account=account))

        assert await refused(new_id("gpu"), "acme") == Closed("unknown")
        assert await refused(suspended, "acme") == Closed("suspended")
        assert await refused(rented, OTHER_ACCOUNT) == Closed("rented")
        assert isinstance(await refused(rented, "acme"), Quote)

    async def test_an_unpaid_quote_ends_with_its_price_lock(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))

        bench.clock.advance(LOCK_SECONDS - 0.001)
        assert (await the_quote(bench, quote)).status is QuoteStatus.OPEN
        bench.clock.advance(0.001)
        assert (await the_quote(bench, quote)).status is QuoteStatus.EXPIRED

    async def test_a_payment_is_followed_from_its_first_word_on(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        first = seen(quote, 11)
        heard_at = bench.clock.now()

        assert await bench.store.note_progress([first, seen(quote, 12)]) == 1
        shown = await the_quote(bench, quote)
        assert (shown.status, shown.seen) == (QuoteStatus.SEEN, Progress(heard_at, 11))

        bench.clock.advance(1)
        assert await bench.store.note_progress([seen(quote, 13, is_final=True, by_memo=True)]) == 1
        shown = await the_quote(bench, quote)
        assert (shown.status, shown.seen) == (QuoteStatus.FINAL, Progress(heard_at, 11))
        assert shown.final == Progress(heard_at + timedelta(seconds=1), 13)

        bench.clock.advance(1)
        receipt = await pay(bench, quote, 7_200)
        assert await bench.store.note_progress([seen(quote, 14), seen(quote, 14, is_final=True)]) == 0
        shown = await the_quote(bench, quote)
        assert (shown.status, shown.signature) == (QuoteStatus.CREDITED, receipt.signature)
        assert shown.credited == Progress(heard_at + timedelta(seconds=2), receipt.slot)

    async def test_a_payment_is_found_at_the_quotes_of_its_account_alone(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        ours = await a_quote(bench, gpu)
        theirs = await a_quote(bench, gpu, account=OTHER_ACCOUNT)
        sightings = [
            QuoteSighting(ours.reference, "", 7, "one", is_final=False),
            QuoteSighting(theirs.reference, "", 7, "two", is_final=False),
        ]
        await bench.store.note_progress(sightings)

        (found,) = await bench.store.quotes_of(ours.account, "one")

        assert (found.offer, found.status) == (ours, QuoteStatus.SEEN)
        assert await bench.store.quotes_of(ours.account, "two") == []

    async def test_a_payment_that_was_never_announced_leaves_its_times_too(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))

        receipt = await pay(bench, quote, 7_200)

        shown = await the_quote(bench, quote)
        assert shown.seen is not None
        assert shown.final == shown.credited == Progress(bench.clock.now(), receipt.slot)

    async def test_references_are_watched_page_by_page_until_their_time_is_over(
        self, bench: StoreBench
    ) -> None:
        gpu = await an_instance(bench)
        old = await a_quote(bench, gpu)
        bench.clock.advance(60)
        made = [await a_quote(bench, gpu) for _ in range(5)]

        pages: list[list[str]] = []
        place = None
        while True:
            found, place = await bench.store.watched_quotes(old.expires_at, place, 2)
            pages.append([quote.offer.reference for quote in found])
            if place is None:
                break

        assert list(chain.from_iterable(pages)) == [quote.reference for quote in made]
        assert max(map(len, pages)) == 2

    async def test_a_price_that_changes_leaves_quotes_as_they_were(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)

        assert await bench.store.change_prices(gpu, [PriceOffer(HOUR.asset, 720_000, 3_600)])
        assert not await bench.store.change_prices(new_id("gpu"), [HOUR])
        await pay(bench, quote, quote.amount)

        assert (await the_quote(bench, quote)).granted_seconds == 3_600
