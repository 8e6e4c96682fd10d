"""A till on a real development chain: store, nodes, watch and settler, as the server wires them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tempa.core.clock import SystemClock
from tempa.core.ids import new_id
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import Treasury
from tempa.settlement.post import Terms
from tempa.settlement.quorum import Quorum, Rule
from tempa.settlement.quotes import PriceOffer, Quote, new_quote, reference_from
from tempa.settlement.rentals import NewInstance
from tempa.settlement.settle import Settler
from tempa.settlement.watch import ListedMint, TreasuryWatch
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.payments import Payment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tempa.adapters.stores.sqlite.store import SqliteStore
    from tempa.adapters.wakes.in_process import InProcessWake
    from tempa.settlement.model import TreasuryAccount
    from tempa.settlement.ports import Chain
    from tempa.testing.devchain.chain import DevChain

FINAL_SLOTS = 33
_PATIENCE_SECONDS = 10.0
RENTER = "renter"
OPERATOR = "operator"
SECOND = 1_000  # base units of either asset


@dataclass
class Outcomes:
    """A meter that tells what lookups came to, one by one."""

    queue: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    observed: list[float] = field(default_factory=list)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        assert amount == 1
        if name == "tempa_settlement_lookups_total":
            self.queue.put_nowait(labels["outcome"])

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        assert name
        assert not labels
        self.observed.append(seconds)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        """Nothing is asked of gauges."""

    async def next(self) -> str:
        """What the next lookup comes to."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return await self.queue.get()


@dataclass
class Till:
    """All of it. `settling` runs the settler."""

    chain: DevChain
    store: SqliteStore
    wake: InProcessWake
    nodes: Sequence[Chain]
    rule: Rule = field(default_factory=Rule)
    outcomes: Outcomes = field(default_factory=Outcomes)
    mints: Sequence[ListedMint] | None = None
    settler_options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.quorum = Quorum(self.nodes, Treasury(cluster="", accounts=()), self.rule)
        self.watch = TreasuryWatch(
            quorum=self.quorum,
            store=self.store,
            wallet=str(self.chain.treasury.key),
            mints=[ListedMint(mint=str(self.chain.mint))] if self.mints is None else self.mints,
        )
        self.settler = Settler(
            store=self.store,
            quorum=self.quorum,
            watch=self.watch,
            terms=Terms(operator=OPERATOR),
            wake=self.wake,
            clock=SystemClock(),
            meter=self.outcomes,
            rng=random.Random(5),
            **self.settler_options,
        )

    @contextlib.asynccontextmanager
    async def settling(self) -> AsyncIterator[Outcomes]:
        """The settler at work. The treasury is looked at once, before."""
        await self.watch.look()
        stop = asyncio.Event()
        task = asyncio.create_task(self.settler.run(stop))
        try:
            yield self.outcomes
        finally:
            stop.set()
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await task

    async def quote(self, seconds: int = 60, asset: str | None = None, account: str = RENTER) -> Quote:
        """A quote for an instance of its own, in the chain's mint if no asset is named."""
        asset = str(self.chain.mint) if asset is None else asset
        assert self.watch.treasury is not None
        row = next(row for row in self.watch.treasury.accounts if row.asset == asset)
        return await self.quote_at(row, seconds, account)

    async def quote_at(self, row: TreasuryAccount, seconds: int = 60, account: str = RENTER) -> Quote:
        """A quote in the asset of one of the treasury's accounts, at SECOND base units a second."""
        offer = PriceOffer(row.asset, SECOND, 1)
        instance = await self.store.add_instance(NewInstance(id=new_id("gpu"), name="H200", prices=(offer,)))
        made = await self.store.open_quote(
            new_quote(
                quote_id=new_id("quo"),
                account=account,
                gpu_instance_id=instance.id,
                seconds=seconds,
                price=offer.price,
                treasury=row,
                reference=reference_from(random.randbytes(32)),
                now=SystemClock().now(),
                lock_seconds=900.0,
            )
        )
        assert isinstance(made, Quote)
        return made

    def pay(self, quote: Quote, amount: int | None = None, *, final: bool = True) -> str:
        """A wallet pays it, in full if no amount is named; final at once if nothing else is said."""
        offer = quote.offer
        told = {
            "to": str(self.chain.treasury.key),
            "asset": offer.asset,
            "amount": offer.amount if amount is None else amount,
            "reference": offer.reference,
            "decimals": offer.decimals,
        }
        return self.send(Payment.of(told), final=final)

    def send(self, payment: Payment, *, final: bool = True) -> str:
        """Any payment."""
        signature = self.chain.payer.send(*payment.instructions(self.chain.payer.key))
        if final:
            self.chain.cluster.tick(FINAL_SLOTS)
        return signature

    def pay_nobody(self, lamports: int) -> str:
        """A payment that names no quote."""
        step = make.pay_sol(self.chain.payer.key, self.chain.treasury.key, lamports)
        signature = self.chain.payer.send(step)
        self.chain.cluster.tick(FINAL_SLOTS)
        return signature

    async def hear(self, *signatures: str, source: str = "generic") -> None:
        """As from a provider."""
        await self.store.take_in(Incoming(source=source, raw=b"{}", signatures=signatures))

    async def again(self, quote: Quote) -> Quote:
        """The quote as it stands now."""
        found = await self.store.quote(quote.offer.account, quote.offer.id)
        assert found is not None
        return found

    async def reasons(self) -> list[str]:
        """Of open anomalies, sorted."""
        return sorted(one.reason for one in await self.store.anomalies(100, None))
