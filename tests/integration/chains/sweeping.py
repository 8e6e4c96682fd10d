"""Sweeps of a till, with nodes that hide and stores that fail in the middle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tempa.core.clock import SystemClock
from tempa.core.errors import StoreUnavailable
from tempa.settlement.ports import Trouble
from tempa.settlement.sweep import SOURCE, Sweeper
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.blocks import Commitment

if TYPE_CHECKING:
    from collections.abc import Collection

    from tempa.settlement.ports import Chain, Sighting
    from tests.integration.chains.till import Till


@dataclass
class Tally:
    """A meter that keeps sums and the latest gauges, by name and labels' values."""

    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)
    gauges: dict[tuple[str, ...], float] = field(default_factory=dict)

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        self.counts[name, *labels.values()] += int(amount)

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Nothing is asked of durations."""

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.gauges[name, *labels.values()] = value


class Hiding:
    """A node that leaves transactions out of its histories, by signature. Otherwise it is honest.

    After `pages_left` more pages of histories it is down, if that is a number. With `is_careless` it answers
    whatever slot it is asked to have reached.
    """

    def __init__(self, node: Chain) -> None:
        self._node = node
        self.hidden: set[str] = set()
        self.told_slot: int | None = None
        self.pages_left: int | None = None
        self.is_careless = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._node, name)

    async def slot(self) -> int | Trouble:
        return await self._node.slot() if self.told_slot is None else self.told_slot

    async def signatures_for_address(
        self,
        address: str,
        *,
        before: str | None = None,
        limit: int = 1000,
        min_context_slot: int | None = None,
    ) -> list[Sighting] | Trouble:
        if self.pages_left is not None:
            self.pages_left -= 1
            if self.pages_left < 0:
                return Trouble("node_unreachable", self._node.name)
        reached = None if self.is_careless else min_context_slot
        if not self.hidden:
            return await self._node.signatures_for_address(
                address, before=before, limit=limit, min_context_slot=reached
            )
        rows = await self._node.signatures_for_address(address, min_context_slot=reached)
        if isinstance(rows, Trouble):
            return rows
        told = [row for row in rows if row.signature not in self.hidden]
        places = [at for at, row in enumerate(told, start=1) if row.signature == before]
        start = 0 if before is None else places[0] if places else len(told)
        return told[start : start + limit]


class Broken:
    """A store whose disk is full whenever one of its commands is to be written."""

    def __init__(self, store: Any, command: str) -> None:
        self._store, self._command = store, command

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self._command else getattr(self._store, name)

    async def _fail(self, *_: object) -> None:
        raise StoreUnavailable("no space left")


def sweeper(till: Till, **options: Any) -> Sweeper:
    """One that has just been started."""
    parts = {"store": till.store, "quorum": till.quorum, "watch": till.watch, "meter": Tally()}
    return Sweeper(**{**parts, "clock": SystemClock(), **options})


def pay_many(till: Till, count: int, *, a_slot: int = 5, first: int = 1, then: int = 33) -> list[str]:
    """So many payments in SOL, each of another amount, several in a slot; final `then` slots later."""
    chain, sent = till.chain, []
    for number in range(count):
        step = make.pay_sol(chain.payer.key, chain.treasury.key, 1_000_000 + first + number)
        sent.append(chain.payer.send(step))
        if number % a_slot == a_slot - 1:
            chain.cluster.tick()
    chain.cluster.tick(then)
    return sent


def shown(till: Till, address: str | None = None) -> set[str]:
    """What the chain itself has of an account, the wallet if none is named, at finality."""
    final = till.chain.cluster.block(Commitment.FINALIZED).slot
    known = till.chain.cluster.history(address or str(till.chain.treasury.key))
    return {landed.signature for landed in known if landed.slot <= final}


async def unheard(till: Till, signatures: Collection[str]) -> set[str]:
    """Those of them that no sweep has brought into the inbox."""
    missing = set()
    for signature in signatures:
        told = await till.store.inbox_of(signature)
        if SOURCE not in {entry.source for entry in told}:
            missing.add(signature)
    return missing
