"""A store whose payments have nodes' answers behind them: what was posted can be proven, and found again."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from tempa.core.clock import to_ms
from tempa.core.ids import new_id
from tempa.settlement.post import Posted, Proven, Terms
from tempa.settlement.quotes import NewQuote, Price, PriceOffer, Quote, new_quote, reference_from
from tempa.settlement.rentals import NewInstance
from tempa.settlement.verify import verify
from tempa.testing.contracts.bench import StoreBench
from tests.unit.settlement.verify_samples import (
    PAYER,
    PAYER_USD,
    TREASURY,
    USD,
    USD_ACCOUNT,
    USD_ROW,
    WALLET,
    Held,
    answer,
    memo,
    paid,
    signature_of,
)

TERMS = Terms(operator="operator", dust={USD: 10})
HOUR = PriceOffer(USD, 7_200, 3_600)
"""Two base units a second."""

LOCK_SECONDS = 900.0
GENESIS_SLOT = 1_000

_numbers = itertools.count(1)


@dataclass
class Shop:
    """`chain`: the answers to all that was paid, by signature."""

    bench: StoreBench
    chain: dict[str, dict[str, Any]] = field(default_factory=dict)
    slot: int = GENESIS_SLOT

    async def instance(self, *prices: PriceOffer) -> str:
        new = NewInstance(id=new_id("gpu"), name="H200", prices=prices or (HOUR,))
        return (await self.bench.store.add_instance(new)).id

    async def quote(
        self, gpu_instance_id: str, account: str = "acme", seconds: int = 3_600, price: Price = HOUR.price
    ) -> NewQuote:
        offer = new_quote(
            quote_id=new_id("quo"),
            account=account,
            gpu_instance_id=gpu_instance_id,
            seconds=seconds,
            price=price,
            treasury=USD_ROW,
            reference=reference_from(next(_numbers).to_bytes(32, "little")),
            now=self.bench.clock.now(),
            lock_seconds=LOCK_SECONDS,
        )
        opened = await self.bench.store.open_quote(offer)
        assert isinstance(opened, Quote), opened
        return opened.offer

    def lands(self, amount: int, *quotes: NewQuote, memos: tuple[str, ...] = (), **changes: Any) -> str:
        """A payment on the chain, in a block of its own: its signature. Nobody here knows of it yet."""
        signature = signature_of(f"shop {next(_numbers)}")
        self.slot += 1
        made = paid(
            amount,
            keys=tuple(quote.reference for quote in quotes),
            instructions=tuple(memo(text) for text in memos),
            transactionIndex=3,
        )
        made["transaction"]["signatures"] = [signature]
        seconds = to_ms(self.bench.clock.now()) // 1000
        self.chain[signature] = {**made, "slot": self.slot, "blockTime": seconds, **changes}
        return signature

    def leaves(self, amount: int) -> str:
        """A payment out of the treasury."""
        signature = self.lands(0)
        held = (Held(USD_ACCOUNT, 10**9, 10**9 - amount), Held(PAYER_USD, 7, 7 + amount, owner=PAYER))
        made = answer(*held, transactionIndex=3)
        made["transaction"]["signatures"] = [signature]
        known = self.chain[signature]
        self.chain[signature] = {**made, "slot": known["slot"], "blockTime": known["blockTime"]}
        return signature

    async def post(self, signature: str, nodes: tuple[str, ...] = ("one", "two")) -> Posted:
        return await self.bench.store.post_credits(self.proven(signature, nodes))

    def proven(self, signature: str, nodes: tuple[str, ...] = ("one", "two")) -> Proven:
        told = self.chain[signature]
        evidence = [{"node": node, "answer": told} for node in nodes]
        return Proven(verdict=verify(told, TREASURY, signature), terms=TERMS, evidence=evidence)

    async def pays(self, amount: int, *quotes: NewQuote, **how: Any) -> str:
        """Lands, and is posted."""
        signature = self.lands(amount, *quotes, **how)
        assert (await self.post(signature)).receipts == 1
        return signature


__all__ = ["HOUR", "LOCK_SECONDS", "TERMS", "TREASURY", "USD", "WALLET", "Shop"]
