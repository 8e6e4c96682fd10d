"""Contract of posting: once, in the chain's amount, at the quote's price, the rest of a second carried."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING

from tempa.core.clock import rfc3339, to_ms
from tempa.core.work import EVENTS
from tempa.settlement.events import CREDITED
from tempa.settlement.model import Part, QuoteStatus
from tempa.settlement.post import Posted
from tempa.settlement.quotes import Price, PriceOffer
from tempa.testing.contracts.settlement_steps import (
    HOUR,
    LAMPORTS,
    LOCK_SECONDS,
    MINT,
    TERMS,
    TOKENS,
    a_quote,
    a_receipt,
    an_instance,
    once,
    pay,
    proven,
    the_instance,
    the_quote,
    told,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench

THIRD = PriceOffer(MINT, 3, 1)
"""Three base units a second: most payments leave a rest."""


class PostingContract:
    """A receipt becomes time once."""

    async def test_a_payment_becomes_time_and_is_told(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        receipt = a_receipt(bench, quote, 7_200)
        until = bench.clock.now() + timedelta(hours=1)

        async with bench.expect_ring(EVENTS):
            assert await bench.store.post_credits(proven(receipt)) == Posted(receipts=1, credits=1)

        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert (rental.account, rental.expires_at, rental.seconds) == (quote.account, until, 3_600)
        (event,) = await told(bench, CREDITED)
        assert (event.account, event.job_id) == (quote.account, None)
        assert event.body["data"] == {
            "gpu_instance_id": gpu,
            "quote_id": quote.id,
            "signature": receipt.signature,
            "seconds": 3_600,
            "current_expiry": rfc3339(until),
        }
        (recorded,) = await bench.store.receipts_of(receipt.signature)
        assert recorded.receipt == receipt
        assert recorded.evidence[0]["answer"] == {"slot": receipt.slot}
        (allocation,) = recorded.allocations
        assert (allocation.quote_id, allocation.amount, allocation.seconds) == (quote.id, 7_200, 3_600)

    async def test_64_posts_of_one_receipt_at_once_are_one_credit(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        until = bench.clock.now() + timedelta(hours=1)
        receipt = a_receipt(bench, quote, 7_200)

        answers = await asyncio.gather(*(bench.store.post_credits(proven(receipt)) for _ in range(64)))

        assert once(answers) == Posted(receipts=1, credits=1)
        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.expires_at == until
        assert len(await told(bench, CREDITED)) == 1
        assert len(await bench.store.receipts_of(receipt.signature)) == 1

    async def test_the_same_receipt_is_known_whatever_else_is_said_of_it(self, bench: StoreBench) -> None:
        """By transaction, asset and account: what nodes say of places and labels does not matter."""
        gpu = await an_instance(bench)
        quote, other = await a_quote(bench, gpu), await a_quote(bench, gpu)
        receipt = await pay(bench, quote, 7_200)
        claimed = replace(receipt, references=(other.reference,), amount=10**9, index=None, slot=1)

        assert await bench.store.post_credits(proven(claimed)) == Posted()

        assert (await the_quote(bench, other)).granted_seconds == 0

    async def test_a_rental_is_prolonged_from_its_end(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        first = await a_quote(bench, gpu)
        begin = bench.clock.now()
        await pay(bench, first, 7_200)
        bench.clock.advance(600)
        second = await a_quote(bench, gpu, 60)

        await pay(bench, second, 120)

        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.expires_at == begin + timedelta(seconds=3_660)
        assert (rental.seconds, rental.quote_id) == (3_660, second.id)

    async def test_a_rental_whose_end_has_passed_goes_on_from_now(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        await pay(bench, await a_quote(bench, gpu), 7_200)
        bench.clock.advance(4_000)

        await pay(bench, await a_quote(bench, gpu), 7_200)

        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.expires_at == bench.clock.now() + timedelta(hours=1)

    async def test_payments_at_once_for_one_instance_all_count(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quotes = [await a_quote(bench, gpu, 60) for _ in range(20)]
        begin = bench.clock.now()

        await asyncio.gather(*(pay(bench, quote, 120) for quote in quotes))

        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.expires_at == begin + timedelta(seconds=20 * 60)

    async def test_one_transaction_may_pay_two_quotes_and_two_assets(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench, HOUR, PriceOffer("SOL", 10**9, 3_600))
        first, second = await a_quote(bench, gpu, 60), await a_quote(bench, gpu, 30)
        third = await a_quote(bench, gpu, 36, price=Price.of(3_600, 10**9), treasury=LAMPORTS)
        parts = (Part(120, (first.reference,)), Part(60, (second.reference,)))
        references = (first.reference, second.reference, third.reference)
        tokens = a_receipt(bench, first, 180, parts=parts, references=references)
        lamports = replace(
            a_receipt(bench, third, 10**7, references=references),
            signature=tokens.signature,
            slot=tokens.slot,
        )

        posted = await bench.store.post_credits(proven(tokens, lamports))

        assert posted == Posted(receipts=2, credits=3)
        granted = [(await the_quote(bench, quote)).granted_seconds for quote in (first, second, third)]
        assert granted == [60, 30, 36]

    async def test_the_largest_amount_there_is_fits(self, bench: StoreBench) -> None:
        price = PriceOffer(MINT, 2**64 - 1, 3_600)
        gpu = await an_instance(bench, price)
        quote = await a_quote(bench, gpu, price=price.price)

        for _ in range(3):
            await pay(bench, quote, 2**64 - 1)

        shown = await the_quote(bench, quote)
        assert (shown.paid, shown.granted_seconds) == (3 * (2**64 - 1), 3 * 3_600)
        flows = await bench.store.flows()
        assert flows[MINT, TOKENS.address].received == 3 * (2**64 - 1)

    async def test_a_faulty_payment_in_a_batch_fails_alone(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quotes = [await a_quote(bench, gpu, 60) for _ in range(5)]
        receipts = [a_receipt(bench, quote, 120) for quote in quotes]
        receipts[2] = replace(receipts[2], slot=2**70)  # no database has a column for it

        answers = await asyncio.gather(
            *(bench.store.post_credits(proven(receipt)) for receipt in receipts), return_exceptions=True
        )

        assert [isinstance(answer, Exception) for answer in answers] == [False, False, True, False, False]
        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.seconds == 4 * 60


class PriceContract:
    """Under, over, in parts, and late."""

    async def test_parts_buy_what_their_sum_buys(self, bench: StoreBench) -> None:
        random_parts = random.Random(7)  # noqa: S311 - parts, not a secret
        for _ in range(5):
            gpu = await an_instance(bench, THIRD)
            quote = await a_quote(bench, gpu, 300, price=THIRD.price)
            parts = [random_parts.randint(10, 60) for _ in range(12)]
            begin = bench.clock.now()

            await asyncio.gather(*(pay(bench, quote, part) for part in parts))

            rental = (await the_instance(bench, gpu)).rental
            assert rental is not None
            assert rental.expires_at == begin + timedelta(seconds=int(Fraction(sum(parts), 3)))
            assert (await the_quote(bench, quote)).paid == sum(parts)

    async def test_what_is_less_than_a_second_waits_for_the_rest(self, bench: StoreBench) -> None:
        price = PriceOffer(MINT, 100, 1)
        gpu = await an_instance(bench, price)
        quote = await a_quote(bench, gpu, 1, price=price.price)

        await pay(bench, quote, 60)
        assert (await the_instance(bench, gpu)).rental is None
        assert (await the_quote(bench, quote)).status is QuoteStatus.PARTIAL
        assert await told(bench, CREDITED) == []

        await pay(bench, quote, 40)
        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.seconds == 1
        assert (await the_quote(bench, quote)).status is QuoteStatus.CREDITED

    async def test_less_buys_less_and_more_buys_more(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        under, over = await a_quote(bench, gpu), await a_quote(bench, gpu)

        await pay(bench, under, 7_198)
        await pay(bench, over, 7_202)

        less, more = await the_quote(bench, under), await the_quote(bench, over)
        assert (less.status, less.granted_seconds) == (QuoteStatus.PARTIAL, 3_599)
        assert (more.status, more.granted_seconds) == (QuoteStatus.CREDITED, 3_601)

    async def test_late_money_buys_at_the_present_price(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        await pay(bench, quote, 3_600)
        await bench.store.change_prices(gpu, [PriceOffer(MINT, 14_400, 3_600)])
        bench.clock.advance(LOCK_SECONDS + TERMS.lock_tolerance_seconds + 1)

        await pay(bench, quote, 3_600)

        shown = await the_quote(bench, quote)
        assert (shown.status, shown.granted_seconds) == (QuoteStatus.LATE, 1_800 + 900)
        assert shown.paid == 7_200

    async def test_the_blocks_time_counts_and_not_when_we_came_to_it(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        paid_at = to_ms(quote.expires_at) // 1000 + TERMS.lock_tolerance_seconds
        await bench.store.change_prices(gpu, [PriceOffer(MINT, 72_000, 3_600)])
        bench.clock.advance(100_000)

        await pay(bench, quote, 3_600, block_time=paid_at)
        assert (await the_quote(bench, quote)).granted_seconds == 1_800

        await pay(bench, quote, 3_600, block_time=paid_at + 1)
        assert (await the_quote(bench, quote)).granted_seconds == 1_800 + 180

    async def test_without_a_blocks_time_the_time_of_posting_counts(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        await bench.store.change_prices(gpu, [PriceOffer(MINT, 72_000, 3_600)])

        await pay(bench, quote, 3_600, block_time=None)
        bench.clock.advance(100_000)
        await pay(bench, quote, 3_600, block_time=None)

        assert (await the_quote(bench, quote)).granted_seconds == 1_800 + 180
