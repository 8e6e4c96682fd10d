"""What time does by itself: rentals are warned of, come into grace and end, and nonces are forgotten."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.settlement.ingress import WINDOW_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.settlement.ports import SettlementStore

_logger = logging.getLogger(__name__)

_SLICE = 200  # rows a transaction: some milliseconds of SQLite's one writer
_SLICES_MAX = 500  # a round; the other chore gets its turn meanwhile
NONCES_KEPT_SECONDS = 2 * WINDOW_SECONDS
"""A call is taken from so long before its time to so long after it, by clocks that differ."""


@dataclass(kw_only=True)
class Tender:
    """Looks after rentals every `every_seconds`, and after nonces every `nonces_seconds`.

    - `warn_seconds`: before its end a renter is told.
    - `grace_seconds`: for so long after its end a rental can be prolonged.
    """

    store: SettlementStore
    clock: Clock
    meter: Meter
    warn_seconds: float
    grace_seconds: float
    every_seconds: float = 1.0
    nonces_seconds: float = 60.0
    rest_seconds: float = 0.02  # between two slices: whoever else writes waits for one of them at most
    name: str = "tender"

    async def run(self, stop: asyncio.Event) -> None:
        """Tend until `stop`, at once the first time."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._again("rentals", self.expire_rentals, self.every_seconds, stop))
            group.create_task(self._again("nonces", self.forget_nonces, self.nonces_seconds, stop))

    async def expire_rentals(self, stop: asyncio.Event) -> None:
        """One round over rentals. Raises `StoreUnavailable`."""

        async def tend() -> int:
            expired = await self.store.expire_rentals(self.warn_seconds, self.grace_seconds, _SLICE)
            steps = {"warned": expired.warned, "in_grace": expired.in_grace, "ended": expired.ended}
            for step, count in steps.items():
                if count:
                    self.meter.count("tempa_settlement_expiries_total", count, step=step)
            return max(steps.values())

        await self._slices(tend, stop)

    async def forget_nonces(self, stop: asyncio.Event) -> None:
        """One round over nonces that no window takes any more. Raises `StoreUnavailable`."""
        before = self.clock.now() - timedelta(seconds=NONCES_KEPT_SECONDS)
        await self._slices(lambda: self.store.forget_nonces(before, _SLICE), stop)

    async def _again(
        self, what: str, tend: Callable[[asyncio.Event], Awaitable[None]], seconds: float, stop: asyncio.Event
    ) -> None:
        while not stop.is_set():
            try:
                await tend(stop)
            except StoreUnavailable:
                _logger.warning("tending %s waits: the store is away", what)
            await pause(stop, seconds)

    async def _slices(self, tend: Callable[[], Awaitable[int]], stop: asyncio.Event) -> None:
        """Until nothing is left."""
        for _ in range(_SLICES_MAX):
            if await tend() < _SLICE or stop.is_set():
                return
            await pause(stop, self.rest_seconds)
