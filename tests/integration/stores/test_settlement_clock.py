"""A wall clock that is set back: lookups of payments keep their delay."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.work import INBOX
from tempa.settlement.inbox import InboxEnding, InboxState
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.settlement_steps import a_signature, heard

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_lookup_keeps_its_delay_when_the_clock_is_set_back(tmp_path: Path) -> None:
    clock = ManualClock()
    wake = InProcessWake(clock)
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=clock, wake=wake)
    soon, due = a_signature(), a_signature()
    await store.take_in(heard(soon, due))
    again = InboxEnding(
        signature=soon, state=InboxState.PENDING, reason="not_found_yet", delay_seconds=8, is_shown=False
    )
    await store.settle_inbox([again])
    clock.jump(timedelta(seconds=-3_600))

    with wake.listen(INBOX) as ear:
        await store.set_back(3_600_000)
        assert await ear.wait(0)

    assert [claim.signature for claim in await store.claim_inbox(5, 30)] == [due]
    assert await store.next_lookup() == clock.now() + timedelta(seconds=8)
    await store.close()
