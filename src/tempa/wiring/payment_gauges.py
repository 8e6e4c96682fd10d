"""Gauges of payments, read when somebody asks for the metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tempa.settlement.reasons import REASONS, Kind

if TYPE_CHECKING:
    from tempa.core.metrics import Meter
    from tempa.settlement.quorum import Quorum
    from tempa.wiring.parts import Parts

USABLE = "usable"
_EXCLUDING = [code for code, row in REASONS.items() if row.kind in {Kind.TRANSIENT, Kind.ALARM}]


async def measure_payments(parts: Parts) -> None:
    """What waits and why, also what there is none of now: it would stay at what it was last."""
    pending, oldest = await parts.settlement.pending_lookups()
    lag = 0.0 if oldest is None else (parts.clock.now() - oldest).total_seconds()
    parts.meter.gauge("tempa_settlement_pending", pending)
    parts.meter.gauge("tempa_settlement_lag_seconds", max(0.0, lag))
    counts = await parts.settlement.anomaly_counts()
    for reason in REASONS.keys() | counts.keys():
        parts.meter.gauge("tempa_settlement_unmatched", counts.get(reason, 0), reason=reason)
    if parts.payments is not None:
        _measure_nodes(parts.payments.quorum, parts.meter)


def _measure_nodes(quorum: Quorum, meter: Meter) -> None:
    states = Counter(quorum.excluded.values())
    states[USABLE] = len(quorum.usable)
    for state in {*_EXCLUDING, *states}:
        meter.gauge("tempa_settlement_nodes", states[state], state=state)
