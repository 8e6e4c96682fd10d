"""Retention of deliveries: first their payload goes, then the record of them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from tempa.core.clock import Clock
    from tempa.webhooks.ports import WebhookStore

_logger = logging.getLogger(__name__)

_SLICE = 200  # deliveries a transaction: some milliseconds of SQLite's one writer
_SLICES_MAX = 5000  # a round: a million deliveries; the others get theirs meanwhile


@dataclass(kw_only=True)
class DeliveryJanitor:
    """Deletes what finished long ago, dead letters too. What is not finished is never touched."""

    store: WebhookStore
    clock: Clock
    payload_days: float = 30.0
    attempts_days: float = 90.0
    every_seconds: float = 300.0
    rest_seconds: float = 0.02  # between two slices: whoever else writes waits for one of them at most
    name: str = "delivery-janitor"

    async def run(self, stop: asyncio.Event) -> None:
        """Clean every `every_seconds`, at once the first time."""
        while not stop.is_set():
            try:
                await self.clean(stop)
            except StoreUnavailable:
                _logger.warning("cleaning deliveries waits: the store is away")
            await pause(stop, self.every_seconds)

    async def clean(self, stop: asyncio.Event) -> None:
        """One round."""
        payload_end = self.clock.now() - timedelta(days=self.payload_days)
        record_end = self.clock.now() - timedelta(days=self.attempts_days)
        await self._slices("payloads of deliveries", self.store.prune_payloads, payload_end, stop)
        await self._slices("deliveries", self.store.prune_deliveries, record_end, stop)
        await self._slices("events about endpoints", self.store.prune_notices, record_end, stop)

    async def _slices(
        self,
        what: str,
        prune: Callable[[datetime, int], Awaitable[int]],
        before: datetime,
        stop: asyncio.Event,
    ) -> None:
        gone = 0
        for _ in range(_SLICES_MAX):
            count = await prune(before, _SLICE)
            gone += count
            if count < _SLICE or stop.is_set():
                break
            await pause(stop, self.rest_seconds)
        if gone:
            _logger.info("%d %s were pruned", gone, what)
