"""A child rehearses while it waits for its task, and costs nobody an attempt by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.jobs.ports import Made
from tests.integration.host.conftest import PATIENCE_SECONDS
from tests.integration.host.test_leaving import waiting_child

if TYPE_CHECKING:
    from tempa.engines.host.engine_host import EngineHost

TRIES = 50  # a task may come before a child has looked whether there is one


async def test_a_child_that_waits_rehearses_and_a_rehearsal_that_fails_is_no_failure(
    host: EngineHost, run: Any
) -> None:
    for _ in range(TRIES):
        await waiting_child(host, run, "failing_rehearsal")
        outcome = await run("", module="failing_rehearsal")
        assert isinstance(outcome, Made)
        if outcome.measurements["rehearsed"]:
            return
    raise AssertionError("no child ever rehearsed")


async def test_a_rehearsal_that_hangs_ends_its_child_and_costs_no_attempt(
    host: EngineHost, run: Any, processes: Any
) -> None:
    seat = await waiting_child(host, run, "endless_rehearsal")
    processes.hold("rehearsing", seat.pid)

    assert processes.gone("rehearsing", PATIENCE_SECONDS)
    assert isinstance(await run("", module="endless_rehearsal"), Made)
