"""The doorbell's contract, over every implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.adapters.wakes.postgres import PostgresWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.wake import WakeBench, WakeContract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture(params=["in_process", "postgres"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[WakeBench]:
    clock = ManualClock()
    if request.param == "in_process":
        yield WakeBench(wake=InProcessWake(clock), clock=clock)
        return
    wake = PostgresWake(request.getfixturevalue("cluster").url(), clock)
    async with wake.running():
        yield WakeBench(wake=wake, clock=clock)


class TestWake(WakeContract):
    pass
