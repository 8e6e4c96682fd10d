"""One payment after another, without dice: a server on a chain, two quotes, and what a test does to them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from tempa.core.clock import from_ms
from tempa.settlement.inbox import Incoming
from tempa.settlement.model import SOL
from tempa.settlement.post import Terms
from tempa.settlement.quorum import Rule
from tempa.settlement.quotes import NewQuote, PriceOffer, Quote, reference_from
from tempa.settlement.rentals import NewInstance
from tempa.testing.clock import ManualClock
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.blocks import Mode
from tests.simulation.settlement.chain import ClusterChain
from tests.simulation.settlement.ground import FINAL_SLOTS
from tests.simulation.settlement.plays import blank, ground
from tests.simulation.settlement.scene import OPERATOR
from tests.simulation.settlement.server import FileShelf, Server, Tally

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from solders.instruction import Instruction

    from tempa.testing.devchain.wallet import Wallet
    from tests.simulation.settlement.ground import Ground

RENTER = "renter"
PRICE = 1_000  # base units a second, of each asset


@dataclass
class Stall:
    """`usd`, `fee` and `sol` are quotes of an hour, each of an instance of its own."""

    ground: Ground
    store: Any
    clock: ManualClock
    nodes: list[ClusterChain]
    quotes: dict[str, NewQuote] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chain = self.ground.chain
        self.payer: Wallet = self.ground.renters[0]
        self.server = self.process()

    def process(self) -> Server:
        """Another process on the same disk."""
        terms = Terms(operator=OPERATOR)
        return Server(self.ground, self.nodes, Rule(nodes=2), terms, self.clock, self.store, Tally())

    async def quote(self, name: str, asset: str, account: str = RENTER) -> NewQuote:
        """An hour of a fresh instance."""
        offer, now = PriceOffer(asset, PRICE, 1), self.clock.now()
        await self.store.add_instance(NewInstance(id=f"gpu_{name}", name="H200", prices=(offer,)))
        new = NewQuote(
            id=f"quo_{name}",
            account=account,
            gpu_instance_id=f"gpu_{name}",
            asset=asset,
            decimals=9 if asset == SOL else 6,
            treasury=str(self.ground.treasury.key),
            seconds=3_600,
            amount=3_600 * PRICE,
            price=offer.price,
            reference=reference_from(name.encode().ljust(32, b"\1")),
            created_at=now,
            expires_at=now + timedelta(hours=1),
        )
        assert isinstance(await self.store.open_quote(new), Quote)
        self.quotes[name] = new
        return new

    def transfer(self, quote: NewQuote, amount: int | None = None, *, named: bool = True) -> Instruction:
        """What pays a quote, in full if no amount is named; with its reference."""
        amount = quote.amount if amount is None else amount
        references = [Pubkey.from_string(quote.reference)] if named else []
        if quote.asset == SOL:
            step = make.pay_sol(self.payer.key, self.ground.treasury.key, amount)
            return make.labelled(step, *references)
        mint = self.ground.mint_of(quote.asset)
        source, target = (self.ground.account_of(one, mint) for one in (self.payer, self.ground.treasury))
        program = self.ground.program(mint)
        step = make.pay_checked(source, mint, target, self.payer.key, amount, 6, program)
        return make.labelled(step, *references)

    def send(self, *steps: Instruction, final: bool = True, **options: Any) -> str:
        """From the payer; final at once if nothing else is said."""
        signature = self.chain.submit(self.payer.signed(*steps, **options), skip_preflight=True)
        if final:
            self.pass_slots(FINAL_SLOTS)
        return signature

    def pass_slots(self, slots: int) -> None:
        """On the chain and on the clock."""
        self.chain.tick(slots)
        self.clock.advance(slots * self.chain.slot_ms / 1000)

    async def hear(self, *signatures: str, source: str = "generic") -> None:
        """As from a provider."""
        await self.server.fragile.take_in(Incoming(source=source, raw=b"{}", signatures=signatures))

    async def settle(self, server: Server | None = None) -> None:
        """Look up all that is due."""
        server = server or self.server
        await server.look()
        await server.settle()

    async def sweep(self) -> None:
        """Read all histories, once on each node."""
        for _ in self.nodes:
            await self.server.look()
            await self.server.sweeper.sweep()

    async def paid(self, quote: NewQuote) -> int:
        """What was credited to it."""
        found = await self.store.quote(quote.account, quote.id)
        assert found.granted_seconds == found.paid // PRICE
        paid: int = found.paid
        return paid

    async def reasons(self, signature: str) -> list[str]:
        """Why a payment stands before a person."""
        found = await self.store.anomalies_of(signature)
        return [one.reason for one in found if one.resolved_at is None]


@contextlib.asynccontextmanager
async def open_stall(nodes: int = 2) -> AsyncIterator[Stall]:
    """A fresh one on a fresh chain, with three quotes."""
    under = ground()
    under.begin()
    under.chain.mode = Mode.TOWER
    shelf = FileShelf(blank())
    clock = ManualClock(from_ms(1_000 * (under.chain.tip.time or 0)))
    store: Any = await shelf.open(clock)
    try:
        stall = Stall(under, store, clock, [ClusterChain(under, number) for number in range(nodes)])
        for name, asset in (("usd", str(under.usd)), ("fee", str(under.fee)), ("sol", SOL)):
            await stall.quote(name, asset)
        yield stall
    finally:
        under.chain.holding, under.chain.slot_ms = False, 400
        await store.close()
        shelf.close()
