"""The doorbell's contract, over every implementation."""

from __future__ import annotations

import pytest

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.wake import WakeBench, WakeContract


@pytest.fixture(params=["in_process"])
async def bench() -> WakeBench:
    clock = ManualClock()
    return WakeBench(wake=InProcessWake(clock), clock=clock)


class TestWake(WakeContract):
    pass
