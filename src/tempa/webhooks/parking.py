"""After an outage: what died of it is sent once more, and what waited too long for its end dies."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.webhooks.model import DeadReason

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

    from tempa.core.metrics import Meter
    from tempa.webhooks.ports import WebhookStore

_logger = logging.getLogger(__name__)

_SLICE = 200  # deliveries a transaction: 5 to 10 ms of SQLite's one writer
_HOUR_SECONDS = 3600.0


@dataclass(kw_only=True)
class Parking:
    """Looks after endpoints that were down. Which those are, is on their rows: every look is an index's."""

    store: WebhookStore
    meter: Meter
    parked_hours: float = 72.0
    every_seconds: float = 5.0
    rest_seconds: float = 0.02  # between two slices: whoever else writes waits for one of them at most
    name: str = "parking"

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`."""
        while not stop.is_set():
            try:
                await self.heal(stop)
                await self.expire(stop)
                await self.cancel_stranded(stop)
            except StoreUnavailable:
                _logger.warning("the store is away; parked deliveries wait for it")
            await pause(stop, self.every_seconds)

    async def heal(self, stop: asyncio.Event) -> int:
        """Send what died of an outage that is over; how many those were."""
        healed = await self._all(lambda: self.store.heal(_SLICE), stop)
        if healed:
            self.meter.count("tempa_webhook_healed_total", healed)
            _logger.info("%d dead letters are sent once more: their endpoints answer again", healed)
        return healed

    async def expire(self, stop: asyncio.Event) -> int:
        """End what is parked for too long; how many those were."""
        after_seconds = self.parked_hours * _HOUR_SECONDS
        expired = await self._all(lambda: self.store.expire_parked(after_seconds, _SLICE), stop)
        if expired:
            self.meter.count("tempa_webhook_dead_total", expired, reason=DeadReason.ENDPOINT_DOWN)
            _logger.warning("%d deliveries were parked for too long; they are dead letters now", expired)
        return expired

    async def cancel_stranded(self, stop: asyncio.Event) -> int:
        """Cancel what waits where nothing is sent any more; how many those were."""
        canceled = await self._all(lambda: self.store.cancel_stranded(_SLICE), stop)
        if canceled:
            _logger.warning("%d deliveries waited at removed endpoints; they are canceled", canceled)
        return canceled

    async def _all(self, one_slice: Callable[[], Awaitable[int]], stop: asyncio.Event) -> int:
        done = 0
        while count := await one_slice():
            done += count
            if stop.is_set():
                break
            await pause(stop, self.rest_seconds)
        return done
