"""Contract over random histories: whatever comes in any order, the books agree with a plain reckoning."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from tempa.settlement.journal import UNALLOCATED, first_broken, treasury_account
from tempa.settlement.model import QuoteStatus
from tempa.settlement.quotes import PriceOffer
from tempa.testing.contracts.settlement_steps import (
    MINT,
    TERMS,
    TOKENS,
    a_quote,
    a_receipt,
    an_instance,
    proven,
    the_instance,
    the_quote,
)

if TYPE_CHECKING:
    from tempa.settlement.model import Receipt
    from tempa.settlement.quotes import NewQuote
    from tempa.testing.contracts.bench import StoreBench

SEEDS = range(8)
STEPS = 30
PRICES = (PriceOffer(MINT, 7, 3), PriceOffer(MINT, 1, 1), PriceOffer(MINT, 997, 60))


@dataclass
class _History:
    """What was paid, kept apart from the store."""

    luck: random.Random
    bench: StoreBench
    quotes: list[NewQuote] = field(default_factory=list)
    paid: list[tuple[NewQuote | None, Receipt]] = field(default_factory=list)

    async def begin(self) -> None:
        for place in range(3):
            price = PRICES[place]
            gpu = await an_instance(self.bench, price)
            accounts = ("acme", "acme", "globex") if place else ("acme",) * 3
            for account in accounts:
                quote = await a_quote(self.bench, gpu, 500, account=account, price=price.price)
                self.quotes.append(quote)

    async def step(self) -> None:
        """Some payments at once, of which some were posted before; time passes."""
        fresh = [self._payment() for _ in range(self.luck.randint(1, 4))]
        again = self.luck.sample(self.paid, min(len(self.paid), self.luck.randint(0, 3)))
        self.paid += fresh
        posts = [receipt for _, receipt in fresh + fresh + again]
        self.luck.shuffle(posts)
        await asyncio.gather(*(self.bench.store.post_credits(proven(receipt)) for receipt in posts))
        self.bench.clock.advance(self.luck.choice([0.0, 0.5, 3.0]))

    def _payment(self) -> tuple[NewQuote | None, Receipt]:
        quote = self.luck.choice([*self.quotes, None])
        amount = self.luck.choice([self.luck.randint(1, 30), self.luck.randint(10, 900), 2**64 - 1])
        if quote is None or amount != 2**64 - 1:
            return quote, a_receipt(self.bench, quote, amount)
        return None, a_receipt(self.bench, None, amount)


class HistoryContract:
    """I2, I4, I5 and I6 of the settlement's invariants."""

    async def test_the_books_agree_after_any_history(self, bench: StoreBench) -> None:
        came: dict[int, int] = defaultdict(int)
        for seed in SEEDS:
            history = _History(random.Random(seed), bench)  # noqa: S311 - a history, not a secret
            await history.begin()
            for _ in range(STEPS):
                await history.step()
            came[seed] = sum(receipt.amount for _, receipt in history.paid)
            await _check_quotes(bench, history)
        await _check_books(bench, sum(came.values()))


async def _check_quotes(bench: StoreBench, history: _History) -> None:
    """Each instance has one renter; its quotes bought what their sums buy, the others' money waits."""
    granted: dict[str, int] = defaultdict(int)
    for quote in history.quotes:
        mine = [receipt.amount for paid, receipt in history.paid if paid is quote]
        dust = TERMS.dust[MINT]
        whole = sum(amount for amount in mine if amount >= dust)
        shown = await the_quote(bench, quote)
        renter = (await the_instance(bench, quote.gpu_instance_id)).renter
        if renter == quote.account:
            assert shown.paid == whole
            assert shown.granted_seconds == int(whole * Fraction(*quote.price))
        elif renter is not None and whole:
            assert shown.granted_seconds == 0
            assert shown.status in {QuoteStatus.SUSPENSE, QuoteStatus.PARTIAL}
        granted[quote.gpu_instance_id] += shown.granted_seconds
    for gpu, seconds in granted.items():
        rental = (await the_instance(bench, gpu)).rental
        assert (0 if rental is None else rental.seconds) == seconds


async def _check_books(bench: StoreBench, came: int) -> None:
    """Every unit that came is somebody's or waits, by three ways of adding it up; the chain is whole."""
    entries = await bench.store.journal(0, 100_000)
    assert first_broken(entries) is None
    balances = await bench.store.balances()
    assert sum(balances.values()) == 0
    assert balances[treasury_account(MINT), MINT] == came
    assert (await bench.store.flows())[MINT, TOKENS.address].received == came
    recorded = await bench.store.receipts(0, 100_000)
    allocated = sum(part.amount for one in recorded for part in one.allocations)
    waiting = sum(one.amount or 0 for one in await bench.store.anomalies(100_000, None))
    assert allocated + waiting == came
    assert balances[UNALLOCATED, MINT] == -waiting
    assert sum(entry.draft.kind == "receipt" for entry in entries) == len(recorded)
