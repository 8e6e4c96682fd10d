"""Subscriptions to the inbox: what is told is taken down, and a sweep is asked for wherever it may gap."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from tempa.core.errors import StoreUnavailable
from tempa.core.retry import RetryPolicy, full_jitter
from tempa.core.work import either
from tempa.settlement.inbox import Incoming, TakenIn
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.ports import PushSource, SettlementStore, Told
    from tempa.settlement.watch import TreasuryWatch

_logger = logging.getLogger(__name__)

_RETRIES = RetryPolicy(base_seconds=0.5, cap_seconds=30.0)
_AWAY_SECONDS = 1.0  # between tries to write while the store is away
_OVERLAP_SLOTS = 64  # told again after a reconnection: what is told of a slot comes in no fixed order
_KNOWN_MAX = 8192  # signatures that are not written again; a transaction is told once per address it names


class Backlog:
    """What was told and is not written yet, up to so many messages and bytes."""

    def __init__(self, items_max: int = 8192, size_bytes_max: int = 16 * 1024 * 1024) -> None:
        self._items: deque[Pushed] = deque()
        self._size_bytes = 0
        self._items_max, self._size_bytes_max = items_max, size_bytes_max
        self._filled = asyncio.Event()

    def put(self, item: Pushed) -> bool:
        """False if there is no room: it is dropped."""
        size_bytes = self._size_bytes + len(item.raw)
        if len(self._items) >= self._items_max or size_bytes > self._size_bytes_max:
            return False
        self._items.append(item)
        self._size_bytes = size_bytes
        self._filled.set()
        return True

    async def filled(self) -> None:
        """Wait until there is something in it."""
        await self._filled.wait()

    def oldest(self, items_max: int) -> list[Pushed]:
        """The first of them, which stay until they are dropped: a writer may fail."""
        return [self._items[at] for at in range(min(items_max, len(self._items)))]

    def drop(self, count: int) -> None:
        """Forget the oldest so many."""
        for _ in range(count):
            self._size_bytes -= len(self._items.popleft().raw)
        if not self._items:
            self._filled.clear()


@dataclass(kw_only=True)
class Listener:
    """Listens to one source until told to stop, and again after each connection that ends.

    - `on_gap`: asks for a sweep, soon. Called after each connection's start and end and wherever something
      may have been missed, at most once in `gap_seconds`: nothing depends on what a source tells.
    - `batch_max`: messages written at once, in one commit.
    """

    source: PushSource
    store: SettlementStore
    watch: TreasuryWatch
    on_gap: Callable[[], None]
    clock: Clock
    meter: Meter
    rng: Random
    backlog: Backlog = field(default_factory=Backlog)
    retries: RetryPolicy = _RETRIES
    batch_max: int = 256
    gap_seconds: float = 2.0
    _gap: asyncio.Event = field(default_factory=asyncio.Event)
    _reached: int | None = None
    _known: OrderedDict[str, None] = field(default_factory=OrderedDict)

    @property
    def name(self) -> str:
        """Of the role."""
        return f"listener ({self.source.name})"

    async def run(self, stop: asyncio.Event) -> None:
        """Listen until `stop`; what was told by then is written."""
        await either(self.watch.ready.wait(), stop.wait())
        if stop.is_set() or self.watch.treasury is None:
            return
        addresses = [account.address for account in self.watch.treasury.accounts]
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(stop))
            endless = [group.create_task(chore) for chore in (self._hear(addresses), self._ask_for_sweeps())]
            await stop.wait()
            for chore in endless:
                chore.cancel()
        await self._empty()

    async def _hear(self, addresses: Sequence[str]) -> NoReturn:
        """One connection after another."""
        retry = 0
        while True:
            since = self.clock.monotonic()
            await self._listen(addresses)
            self.meter.gauge("tempa_settlement_source_up", 0, source=self.source.name)
            if self.clock.monotonic() - since > self.retries.cap_seconds:
                retry = 0  # it was of use: what ended it is news
            await self.clock.sleep(full_jitter(retry, self.retries, self.rng))
            retry += 1

    async def _listen(self, addresses: Sequence[str]) -> None:
        from_slot = None if self._reached is None else max(0, self._reached - _OVERLAP_SLOTS)
        try:
            async with aclosing(self.source.listen(addresses, from_slot)) as telling:
                async for told in telling:
                    self._note(told)
        except Exception:  # a fault of ours in reading a message must not end the listening
            _logger.exception("listening to %s broke", self.source.name)
            self._note(Gap(GapReason.LOST, "a fault of our own; see the log"))

    def _note(self, told: Told) -> None:
        if isinstance(told, Reached):
            self._reached = told.slot
        elif isinstance(told, Gap):
            self._note_gap(told)
        elif told.signature not in self._known and not self.backlog.put(told):
            self._note_gap(Gap(GapReason.OVERFLOW))

    def _note_gap(self, gap: Gap) -> None:
        self.meter.count("tempa_settlement_gaps_total", source=self.source.name, reason=gap.reason)
        if gap.reason is GapReason.CONNECTED:
            self.meter.gauge("tempa_settlement_source_up", 1, source=self.source.name)
            _logger.info("%s listens %s", self.source.name, gap.detail)
        elif not self._gap.is_set():  # a flood is told of once
            words = "%s may have missed payments (%s) %s; a sweep looks for them"
            _logger.warning(words, self.source.name, gap.reason, gap.detail)
        self._gap.set()

    async def _ask_for_sweeps(self) -> NoReturn:
        while True:
            await self._gap.wait()
            self._gap.clear()
            self.on_gap()
            await self.clock.sleep(self.gap_seconds)

    async def _write(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await either(self.backlog.filled(), stop.wait())
            if not await self._empty():
                await either(self.clock.sleep(_AWAY_SECONDS), stop.wait())

    async def _empty(self) -> bool:
        """Write all that waits; False if the store is away."""
        while batch := self.backlog.oldest(self.batch_max):
            if not await self._take_in(batch):
                return False
        return True

    async def _take_in(self, batch: Sequence[Pushed]) -> bool:
        """Write the oldest of the backlog; False if the store is away, and they stay."""
        fresh = {told.signature: told for told in batch if told.signature not in self._known}
        calls = (self.store.take_in(self._incoming(told)) for told in fresh.values())
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        written = [self._is_settled(*pair) for pair in zip(fresh, outcomes, strict=True)]
        if not all(written):
            _logger.warning("the store is away; what %s tells waits for it", self.source.name)
            return False
        self.backlog.drop(len(batch))
        return True

    def _incoming(self, told: Pushed) -> Incoming:
        return Incoming(source=self.source.name, raw=told.raw, signatures=(told.signature,))

    def _is_settled(self, signature: str, outcome: TakenIn | BaseException) -> bool:
        """Whether there is nothing more to do for one message; one that cannot be written is the sweep's."""
        if isinstance(outcome, StoreUnavailable):
            return False
        if isinstance(outcome, TakenIn):
            self._remember(signature)
            how = "accepted" if outcome.accepted else "duplicate"
            self.meter.count("tempa_settlement_heard_total", source=self.source.name, outcome=how)
        else:
            _logger.error("a payment that was told could not be written", exc_info=outcome)
            self._gap.set()
        return True

    def _remember(self, signature: str) -> None:
        self._known[signature] = None
        if len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)
