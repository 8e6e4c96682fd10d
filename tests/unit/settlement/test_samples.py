"""A flood of calls that were not taken becomes few writes, and none is left uncounted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.settlement.anomalies import NewAnomaly
from tempa.settlement.samples import EVERY_SECONDS, Samples
from tempa.testing.clock import ManualClock


@dataclass
class Notes:
    noted: list[NewAnomaly] = field(default_factory=list)
    is_away: bool = False

    async def note_anomaly(self, new: NewAnomaly) -> None:
        if self.is_away:
            raise StoreUnavailable
        self.noted.append(new)


@pytest.fixture
def store() -> Notes:
    return Notes()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def samples(store: Notes, clock: ManualClock) -> Samples:
    return Samples(cast("Any", store), clock)


def forged(key: str = "forged:helius:wrong secret", raw: bytes = b"") -> NewAnomaly:
    return NewAnomaly(key=key, reason="call_forged", raw=raw)


async def test_between_two_notes_calls_are_counted_only(
    samples: Samples, store: Notes, clock: ManualClock
) -> None:
    for number in range(100):
        await samples.note(forged(raw=b"%d" % number))
    clock.advance(EVERY_SECONDS)
    await samples.note(forged(raw=b"last"))

    assert [(new.times, new.raw) for new in store.noted] == [(1, b"0"), (100, b"last")]


async def test_one_kind_does_not_hush_another(samples: Samples, store: Notes) -> None:
    for key in ("a", "b", "a", "b"):
        await samples.note(forged(key))

    assert [(new.key, new.times) for new in store.noted] == [("a", 1), ("b", 1)]


async def test_what_could_not_be_noted_is_told_with_the_next(
    samples: Samples, store: Notes, clock: ManualClock
) -> None:
    store.is_away = True
    await samples.note(forged())
    await samples.note(forged())
    store.is_away = False
    clock.advance(EVERY_SECONDS)

    await samples.note(forged())

    assert [new.times for new in store.noted] == [3]
