"""Samples of calls that were not taken: enough for a person to look at, however many there are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from tempa.core.clock import Clock
    from tempa.settlement.anomalies import NewAnomaly
    from tempa.settlement.ports import SettlementStore

EVERY_SECONDS = 10.0  # a flood of forged calls must not become a flood of writes
SAMPLE_BYTES = 4096  # of a call of nobody knows whom


@dataclass(slots=True)
class Samples:
    """Notes one of a kind at a time; those between are counted, and told with the next one that is noted.

    A kind is an anomaly's key: there must be few.
    """

    store: SettlementStore
    clock: Clock
    _times: Counter[str] = field(default_factory=Counter)
    _quiet_until: dict[str, float] = field(default_factory=dict)

    async def note(self, new: NewAnomaly) -> None:
        """Never raises: the answer to the call does not hang on it."""
        now = self.clock.monotonic()
        self._times[new.key] += new.times
        if now < self._quiet_until.get(new.key, now):
            return
        self._quiet_until[new.key] = now + EVERY_SECONDS
        times = self._times.pop(new.key)
        try:
            await self.store.note_anomaly(replace(new, times=times))
        except StoreUnavailable:
            self._times[new.key] += times
