"""What `/metrics` shows of payments, also what there is none of any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.testing.clock import START, ManualClock
from tempa.wiring.payment_gauges import measure_payments

if TYPE_CHECKING:
    from datetime import datetime

    from tempa.wiring.parts import Parts


@dataclass
class Books:
    """What of a store is measured."""

    pending: tuple[int, datetime | None] = (0, None)
    open_ones: dict[str, int] = field(default_factory=dict)

    async def pending_lookups(self) -> tuple[int, datetime | None]:
        return self.pending

    async def anomaly_counts(self) -> dict[str, int]:
        return self.open_ones


def parts(books: Books, meter: PrometheusMeter, quorum: Any = None) -> Parts:
    payments = None if quorum is None else SimpleNamespace(quorum=quorum)
    made = SimpleNamespace(settlement=books, clock=ManualClock(), meter=meter, payments=payments)
    return cast("Parts", made)


async def shown(books: Books, meter: PrometheusMeter, quorum: Any = None) -> list[str]:
    await measure_payments(parts(books, meter, quorum))
    return meter.render()[0].decode().splitlines()


async def test_what_waits_is_shown_and_its_age() -> None:
    meter = PrometheusMeter()
    books = Books(pending=(3, START - timedelta(seconds=40)), open_ones={"no_reference": 2})

    lines = await shown(books, meter)

    assert "tempa_settlement_pending 3.0" in lines
    assert "tempa_settlement_lag_seconds 40.0" in lines
    assert 'tempa_settlement_unmatched{reason="no_reference"} 2.0' in lines
    assert 'tempa_settlement_unmatched{reason="balance_mismatch"} 0.0' in lines


async def test_what_is_over_is_shown_as_none() -> None:
    meter = PrometheusMeter()
    books = Books(pending=(1, START), open_ones={"no_reference": 2})
    await shown(books, meter)

    lines = await shown(Books(), meter)

    assert "tempa_settlement_pending 0.0" in lines
    assert "tempa_settlement_lag_seconds 0.0" in lines
    assert 'tempa_settlement_unmatched{reason="no_reference"} 0.0' in lines


async def test_nodes_are_counted_by_why_they_may_not_be_asked() -> None:
    meter = PrometheusMeter()
    excluded = {"a": "node_behind", "b": "node_behind", "c": "wrong_cluster"}

    lines = await shown(Books(), meter, SimpleNamespace(excluded=excluded, usable=("d",)))
    assert 'tempa_settlement_nodes{state="node_behind"} 2.0' in lines
    assert 'tempa_settlement_nodes{state="wrong_cluster"} 1.0' in lines
    assert 'tempa_settlement_nodes{state="usable"} 1.0' in lines

    lines = await shown(Books(), meter, SimpleNamespace(excluded={}, usable=()))
    assert 'tempa_settlement_nodes{state="node_behind"} 0.0' in lines
    assert 'tempa_settlement_nodes{state="usable"} 0.0' in lines
