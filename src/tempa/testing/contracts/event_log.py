"""Contract of the event log: gapless, one ending, one feed whose order never goes back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.events import TERMINAL_EVENTS
from tempa.core.work import DELIVERIES, FEED
from tempa.jobs.model import Beat, Failed, JobError, Stage
from tempa.testing.contracts.bench import planned, sequences, types
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    LEASE_SECONDS,
    OTHER_ACCOUNT,
    retried,
)

if TYPE_CHECKING:
    from tempa.core.events import Event
    from tempa.jobs.model import Claimed
    from tempa.testing.contracts.bench import StoreBench

_URL = "https://hooks.example/a"


class EventLogContract:
    """A job's own log."""

    async def test_sequences_have_no_gaps_whatever_happens(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        await _reach(bench, claimed, "building", "meshing")
        assert await bench.store.settle(claimed.lease, retried())
        (again,) = await bench.claim()
        await _reach(bench, claimed, "late")  # fenced off: takes no number
        await _reach(bench, again, "building")
        assert await bench.store.settle(again.lease, COMPLETED)
        assert not await bench.store.settle(again.lease, COMPLETED)

        log = await bench.log(claimed.job)
        assert sequences(log) == list(range(1, 9))
        assert (await bench.reread(claimed.job)).sequence == 8
        assert [event.type for event in log if event.type in TERMINAL_EVENTS] == ["job.completed"]
        assert log[-1].type == "job.completed"

    async def test_stages_that_come_with_an_ending_are_told_before_it_in_the_log_and_in_the_feed(
        self, bench: StoreBench
    ) -> None:
        """Of jobs that end in one write each has its own, in their order."""
        jobs = [await bench.admit() for _ in range(3)]
        leases = [claimed.lease for claimed in await bench.claim(3)]
        reached = [
            tuple(Stage(name=f"{number}.{n}", at=bench.clock.now()) for n in range(number))
            for number in range(3)
        ]
        await asyncio.gather(
            *(
                bench.store.settle(lease, replace(COMPLETED, stages=stages))
                for lease, stages in zip(leases, reached, strict=True)
            )
        )

        for job, stages in zip(jobs, reached, strict=True):
            log = await bench.log(job)
            told = ["job.queued", "job.started", *("job.stage" for _ in stages), "job.completed"]
            assert types(log) == told
            assert sequences(log) == list(range(1, len(told) + 1))
            assert [event.body["stage"] for event in log[2:-1]] == [stage.name for stage in stages]
            assert (await bench.reread(job)).sequence == len(told)
        feed = await bench.store.unplanned(100)
        for job in jobs:
            assert sequences([event for event in feed if event.job_id == job.id]) == sequences(
                await bench.log(job)
            )

    async def test_what_is_told_of_an_ending_may_hold_any_character(self, bench: StoreBench) -> None:
        """U+0000 is one that PostgreSQL's text has not, and that a kernel's message or a tag may have."""
        odd = "\0 \\u0000 \\ \" ' \x1f 管 \U0001f529"
        claimed = await bench.start(tags={odd: odd})
        stages = (Stage(name=odd[1:], at=bench.clock.now()),)
        failed = Failed(error=JobError(code="KERNEL_CRASHED", message=odd, retryable=True), stages=stages)

        assert await bench.store.settle(claimed.lease, failed)

        *_, stage, end = await bench.log(claimed.job)
        assert stage.body["stage"] == odd[1:]
        assert end.body["message"] == odd
        assert end.announce
        assert end.announce["data"]["tags"] == {odd: odd}

    async def test_a_log_is_read_from_where_one_left_off(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        await _reach(bench, claimed, "building", "meshing", "writing")

        assert sequences(await bench.store.job_events(claimed.job.id, 2, 2)) == [3, 4]
        assert sequences(await bench.store.job_events(claimed.job.id, 4, 100)) == [5]
        assert await bench.store.job_events(claimed.job.id, 5, 100) == []


class FeedContract:
    """The account's feed: positions are given by fan-out, in the order in which events became visible."""

    async def test_an_event_is_in_the_feed_once_it_is_fanned_out(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        waiting = await bench.store.unplanned(10)
        assert await bench.store.feed(ACCOUNT, 0, 10) == []

        async with bench.expect_ring(FEED):
            assert await bench.plan() == 0

        feed = await bench.store.feed(ACCOUNT, 0, 10)
        assert [event.id for event in feed] == [event.id for event in waiting]
        assert [event.job_id for event in feed] == [claimed.job.id, claimed.job.id]
        assert await bench.store.unplanned(10) == []

    async def test_unplanned_are_the_oldest_first(self, bench: StoreBench) -> None:
        jobs = [await bench.admit() for _ in range(4)]

        assert [event.job_id for event in await bench.store.unplanned(3)] == [job.id for job in jobs[:3]]
        await bench.plan(limit=3)
        assert [event.job_id for event in await bench.store.unplanned(3)] == [jobs[3].id]

    async def test_positions_grow_in_the_order_of_writing(self, bench: StoreBench) -> None:
        for _ in range(3):
            await bench.admit()
        first = await bench.store.unplanned(10)
        await bench.store.fan_out([planned(event) for event in reversed(first)])
        await bench.admit()
        await bench.plan()

        feed = await bench.store.feed(ACCOUNT, 0, 10)
        positions = [event.position for event in feed]
        assert [event.id for event in feed[:3]] == [event.id for event in first]
        assert positions == sorted(set(positions), key=lambda position: position or 0)
        assert None not in positions

    async def test_the_feed_is_one_accounts_and_goes_on_from_a_position(self, bench: StoreBench) -> None:
        mine = [await bench.admit()]
        theirs = await bench.admit(account=OTHER_ACCOUNT)
        mine.append(await bench.admit())
        await bench.plan()

        feed = await bench.store.feed(ACCOUNT, 0, 10)
        assert [event.job_id for event in feed] == [job.id for job in mine]
        assert [event.job_id for event in await bench.store.feed(OTHER_ACCOUNT, 0, 10)] == [theirs.id]
        assert await bench.store.feed(ACCOUNT, feed[0].position or 0, 10) == feed[1:]
        assert await bench.store.feed(ACCOUNT, 0, 1) == feed[:1]
        assert await bench.store.feed(ACCOUNT, feed[1].position or 0, 10) == []

    async def test_the_last_position_is_that_of_any_account(self, bench: StoreBench) -> None:
        assert await bench.store.last_position() == 0
        await bench.admit()
        await bench.admit(account=OTHER_ACCOUNT)
        assert await bench.store.last_position() == 0  # not fanned out yet
        await bench.plan()

        (theirs,) = await bench.store.feed(OTHER_ACCOUNT, 0, 10)
        assert await bench.store.last_position() == theirs.position

    async def test_fanning_out_twice_changes_nothing(self, bench: StoreBench) -> None:
        await bench.admit()
        (event,) = await bench.store.unplanned(10)
        first = await bench.store.fan_out([planned(event, _URL)])
        feed = await bench.store.feed(ACCOUNT, 0, 10)

        async with bench.expect_silence(FEED, DELIVERIES):
            again = await bench.store.fan_out([planned(event, _URL), planned(event, f"{_URL}/other")])

        assert (first, again) == (1, 0)
        assert await bench.store.feed(ACCOUNT, 0, 10) == feed
        assert await bench.store.delivery_counts() == {"pending": 1}

    async def test_fan_outs_at_once_give_each_event_one_place(self, bench: StoreBench) -> None:
        for _ in range(20):
            await bench.admit()
        events = await bench.store.unplanned(100)

        made = await asyncio.gather(
            *(bench.store.fan_out([planned(event, _URL) for event in events]) for _ in range(5))
        )

        positions = [event.position for event in await bench.store.feed(ACCOUNT, 0, 100)]
        assert sum(made) == len(events)
        assert len(set(positions)) == len(positions) == len(events)

    async def test_a_follower_misses_nothing_while_others_write(self, bench: StoreBench) -> None:
        """He keeps the last position he saw; events come from many writers at once."""
        writing = asyncio.gather(*(_live(bench, f"lane-{number}") for number in range(12)))
        seen: list[Event] = []
        done = False
        while not done:
            done = writing.done()  # and one more round after that
            await bench.plan(limit=7)
            while page := await bench.store.feed(ACCOUNT, seen[-1].position or 0 if seen else 0, 5):
                seen += page
            done = done and not await bench.store.unplanned(1)
        await writing

        positions = [event.position or 0 for event in seen]
        assert positions == sorted(set(positions))
        assert len(seen) == 12 * 3
        for job_id in {event.job_id for event in seen}:
            assert sequences([event for event in seen if event.job_id == job_id]) == [1, 2, 3]


async def _reach(bench: StoreBench, claimed: Claimed, *names: str) -> None:
    stages = tuple(Stage(name=name, at=bench.clock.now()) for name in names)
    await bench.store.beat([Beat(lease=claimed.lease, stages=stages)], LEASE_SECONDS)


async def _live(bench: StoreBench, lane: str) -> None:
    """A whole life of a job."""
    claimed = await bench.start(lane=lane)
    assert await bench.store.settle(claimed.lease, COMPLETED)
