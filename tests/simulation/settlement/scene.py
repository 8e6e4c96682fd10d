"""How a history begins: a store, nodes that may lie, quotes of two renters, and a server."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.clock import from_ms
from tempa.settlement.model import SOL
from tempa.settlement.post import Terms
from tempa.settlement.quorum import Rule
from tempa.settlement.quotes import NewQuote, Price, PriceOffer, Quote, reference_from
from tempa.settlement.rentals import NewInstance
from tempa.testing.clock import ManualClock
from tempa.testing.devchain.blocks import Mode
from tests.simulation.settlement.chain import ClusterChain, Lie
from tests.simulation.settlement.oracle import Oracle
from tests.simulation.settlement.payments import DUST, Cashier
from tests.simulation.settlement.server import Server, Tally

if TYPE_CHECKING:
    from tests.simulation.settlement.ground import Ground
    from tests.simulation.settlement.server import Shelf

ANN, BOB, OPERATOR = "ann", "bob", "operator"
INSTANCES = 4
TOLERANCE_SECONDS = 5
_PRICES = (PriceOffer("", 7, 3), PriceOffer("", 997, 60), PriceOffer("", 1_000, 1), PriceOffer("", 3, 1))


@dataclass(kw_only=True)
class Scene:
    """What a history plays with. `seen` counts what happened, `ops` tells of it in order.

    - `pushes`: which part of them comes. 0: the sweep finds all.
    - `kept`: how far the ledger went and what people had done when a backup was made.
    """

    seed: int
    ground: Ground
    shelf: Shelf
    seen: Counter[str] = field(default_factory=Counter)
    ops: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        self.ground.begin()
        self.rng = random.Random(self.seed)
        self.chain = self.ground.chain
        self.chain.mode = self.rng.choice([Mode.TOWER, Mode.ALPENGLOW])
        self.chain.alpenglow_since = self.chain.tip.slot
        self.clock = ManualClock(from_ms(1_000 * (self.chain.tip.time or 0)))
        self.store: Any = await self.shelf.open(self.clock)
        self.terms = Terms(
            operator=OPERATOR,
            dust={SOL: DUST["SOL"], str(self.ground.usd): DUST["usd"]},
            lock_tolerance_seconds=TOLERANCE_SECONDS,
        )
        self._open_nodes()
        self.tally = Tally()
        await self._open_quotes()
        self.cashier = Cashier(self.ground, self.rng, self.oracle.quotes)
        self.heard: list[str] = []
        self.checked = 0
        self.ends: dict[tuple[str, datetime], datetime] = {}
        self.is_delegated = False
        self.kept: tuple[int, dict[tuple[str, str], str]] | None = None
        self.pushes = self.rng.choice([0.0, 0.5, 1.0])  # 0: every push is lost, the sweep finds all
        self.server = self.process()

    def _open_nodes(self) -> None:
        """One, two or three; of three, one may lie."""
        count = self.rng.choice([1, 2, 3, 3])
        self.nodes = [ClusterChain(self.ground, number) for number in range(count)]
        self.liar = self.rng.randrange(3) if count == 3 and self.rng.random() < 0.6 else None
        small: dict[str, int] = self.rng.choice([{}, {SOL: 10_000, str(self.ground.usd): 10_000}])
        above = {} if self.liar is not None else small
        self.rule = Rule(nodes=2, above=above)
        if self.liar is not None:
            self.nodes[self.liar].lie = self.rng.choice([lie for lie in Lie if lie is not Lie.NONE])
            self.seen[f"liar {self.nodes[self.liar].lie}"] += 1

    async def _open_quotes(self) -> None:
        """Three instances of one renter each, and one that both want; some quotes end soon, prices change."""
        usd, fee = str(self.ground.usd), str(self.ground.fee)
        wanted = (((ANN, usd), (ANN, usd)), ((ANN, fee),), ((BOB, SOL),), ((ANN, usd), (BOB, usd)))
        quotes: list[NewQuote] = []
        late: dict[tuple[str, str], Price] = {}
        contested: set[str] = set()
        for number, renters in enumerate(wanted):
            gpu, asset = f"gpu_{number}", renters[0][1]
            offer, next_offer = (self._offer(asset) for _ in range(2))
            await self.store.add_instance(NewInstance(id=gpu, name="H200", prices=(offer,)))
            for place, (account, _) in enumerate(renters):
                quotes.append(await self._quote(f"quo_{number}_{place}", account, gpu, offer))
            await self.store.change_prices(gpu, (next_offer,))
            late[gpu, asset] = next_offer.price
            contested |= {gpu} if len({account for account, _ in renters}) > 1 else set()
        self.oracle = Oracle(
            ground=self.ground,
            quotes=quotes,
            late_price=late,
            lock_tolerance_seconds=TOLERANCE_SECONDS,
            contested=frozenset(contested),
        )
        for node in self.nodes:
            node.references = [quote.reference for quote in quotes]

    def _offer(self, asset: str) -> PriceOffer:
        told = self.rng.choice(_PRICES)
        return PriceOffer(asset, told.amount, told.seconds)

    async def _quote(self, quote_id: str, account: str, gpu: str, offer: PriceOffer) -> NewQuote:
        now, seconds = self.clock.now(), self.rng.randint(5_000, 50_000)
        new = NewQuote(
            id=quote_id,
            account=account,
            gpu_instance_id=gpu,
            asset=offer.asset,
            decimals=9 if offer.asset == SOL else 6,
            treasury=str(self.ground.treasury.key),
            seconds=seconds,
            amount=offer.price.amount_for(seconds),
            price=offer.price,
            reference=reference_from(self.rng.randbytes(32)),
            created_at=now,
            expires_at=now + timedelta(seconds=self.rng.choice([15, 40, 900])),
        )
        made = await self.store.open_quote(new)
        assert isinstance(made, Quote)
        return new

    def process(self) -> Server:
        return Server(
            ground=self.ground,
            nodes=self.nodes,
            rule=self.rule,
            terms=self.terms,
            clock=self.clock,
            store=self.store,
            tally=self.tally,
        )
