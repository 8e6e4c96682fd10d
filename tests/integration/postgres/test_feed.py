"""The feed's order with several who write: positions follow visibility, and numbers do not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands import deliveries, delivery_retention
from tempa.adapters.stores.postgres.access import SQL
from tempa.adapters.stores.postgres.admission import admit_all
from tempa.core.clock import SystemClock, from_ms, to_ms
from tempa.testing.contracts.bench import ROOMY, planned
from tempa.testing.contracts.samples import ACCOUNT, COMPLETED, DELIVERED, a_new_job, an_outcome
from tempa.webhooks.room import Room
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished

if TYPE_CHECKING:
    from tempa.adapters.stores.postgres.store import PostgresStore
    from tempa.core.events import Event
    from tests.integration.postgres.sessions import Session

CLOCK = SystemClock()
URL = "https://hooks.example/tempa"
EVERYTHING = 10_000
BEYOND = "select number, id from event where number > $1 order by number"


async def place(store: PostgresStore, *urls: str) -> int:
    """Fan out what this store sees unplanned; how many deliveries are new."""
    return await store.fan_out([planned(event, *urls) for event in await store.unplanned(EVERYTHING)])


async def test_of_two_fan_outs_at_once_each_event_is_taken_by_one(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    jobs = [(await here.admit(a_new_job(CLOCK))).job for _ in range(30)]
    seen = await here.unplanned(EVERYTHING)
    plans = [planned(event, URL) for event in seen]

    made = await asyncio.gather(here.fan_out(plans), there.fan_out(plans[::-1]), here.fan_out(plans[10:]))

    assert sum(made) == len(jobs)
    assert await session.value("select count(*) from delivery") == len(jobs)
    feed = await here.feed(ACCOUNT, 0, EVERYTHING)
    assert [event.job_id for event in feed] == [job.id for job in jobs]
    assert len({event.position for event in feed}) == len(jobs)


async def test_positions_are_given_by_one_at_a_time(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    """Else the later positions could be seen while the earlier ones are still to come."""
    first, second = [(await here.admit(a_new_job(CLOCK))).job for _ in range(2)]
    events = {event.job_id: event for event in await here.unplanned(EVERYTHING)}

    async with unfinished(here, deliveries._fan_out([planned(events[first.id])])):
        rival = asyncio.create_task(there.fan_out([planned(events[second.id])]))
        await session.until_blocked(1)
        before = await there.feed(ACCOUNT, 0, EVERYTHING)
    await asyncio.wait_for(rival, PATIENCE_SECONDS)

    assert before == []
    assert [event.job_id for event in await there.feed(ACCOUNT, 0, EVERYTHING)] == [first.id, second.id]


async def test_no_position_is_given_before_the_lock_is_held(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    """Else who has the earlier ones might get the lock after who has the later ones."""
    for _ in range(2):
        await here.admit(a_new_job(CLOCK))
    first, second = await here.unplanned(EVERYTHING)
    await session.run("begin")
    await session.value(SQL.lock_feed.sql)

    rivals = []
    for store, event in ((here, first), (there, second)):
        rivals.append(asyncio.create_task(store.fan_out([planned(event)])))
        await session.until_blocked(len(rivals))
    given = await session.value("select is_called from feed_position")
    await session.run("commit")
    await asyncio.wait_for(asyncio.gather(*rivals), PATIENCE_SECONDS)

    assert not given
    assert [event.id for event in await there.feed(ACCOUNT, 0, EVERYTHING)] == [first.id, second.id]


async def test_a_reader_by_number_misses_what_commits_late_and_one_by_position_does_not(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    """The number is given when an event is written; it is seen when its transaction ends."""
    slow, quick = a_new_job(CLOCK), a_new_job(CLOCK)
    by_position: list[Event] = []

    async def read_on() -> list[Event]:
        await place(there)
        after = by_position[-1].position if by_position else 0
        return await there.feed(ACCOUNT, after or 0, EVERYTHING)

    async with unfinished(here, admit_all([slow], None)):
        await there.admit(quick)
        by_number = await session.rows(BEYOND, 0)
        by_position += await read_on()
    by_number += await session.rows(BEYOND, by_number[-1]["number"])
    by_position += await read_on()

    assert [row["id"] for row in by_number] == [quick.event_id]  # the slow one has a lower number
    assert [event.id for event in by_position] == [quick.event_id, slow.event_id]


async def test_a_reader_misses_nothing_while_many_write_and_place(
    here: PostgresStore, there: PostgresStore
) -> None:
    """Two processes admit, work and fan out; a third polls the feed as it grows."""
    writing = True
    read: list[Event] = []

    async def write(store: PostgresStore) -> None:
        for _ in range(25):
            await store.admit(a_new_job(CLOCK))
            for claimed in await store.claim("w1", ["cpu"], 1, 30.0):
                assert await store.settle(claimed.lease, COMPLETED)

    async def place_all(store: PostgresStore) -> None:
        while writing:
            await place(store)
        await place(store)

    async def poll() -> None:
        while writing:
            read.extend(await here.feed(ACCOUNT, last(read), 7))

    async with asyncio.timeout(60):
        others = [asyncio.create_task(errand) for errand in (place_all(here), place_all(there), poll())]
        await asyncio.gather(*(write(store) for store in (here, there) for _ in range(2)))
        writing = False
        await asyncio.gather(*others)
    read += await here.feed(ACCOUNT, last(read), EVERYTHING)

    positions = [event.position or 0 for event in read]
    assert positions == sorted(set(positions))
    assert read == await there.feed(ACCOUNT, 0, EVERYTHING)
    assert len(read) >= 100
    assert await there.unplanned(EVERYTHING) == []
    by_job: dict[str, list[int]] = {}
    for event in read:
        by_job.setdefault(event.job_id or "", []).append(event.sequence or 0)
    assert all(sequences == sorted(sequences) for sequences in by_job.values())


def last(read: list[Event]) -> int:
    return (read[-1].position or 0) if read else 0


async def test_rival_senders_never_share_a_delivery(here: PostgresStore, there: PostgresStore) -> None:
    for _ in range(12):
        await here.admit(a_new_job(CLOCK))
    await place(here, URL, "https://other.example/a", "https://third.example/b")

    takes = await asyncio.gather(
        *(store.claim_deliveries(Room(ROOMY), 3, 30.0) for _ in range(4) for store in (here, there))
    )

    taken = [claimed for take in takes for claimed in take.taken]
    assert len({claimed.id for claimed in taken}) == len(taken) == 12
    urls = [claimed.url for claimed in taken]
    assert {url: urls.count(url) for url in urls} == dict.fromkeys(set(urls), 4)  # the bound of an endpoint


@pytest.mark.parametrize("first", ["fan out", "prune"])
async def test_an_endpoint_that_gets_news_while_it_is_pruned_is_there_for_them(
    here: PostgresStore, there: PostgresStore, session: Session, first: str
) -> None:
    """Its last delivery goes, and at this moment another event is fanned out to it."""
    await here.admit(a_new_job(CLOCK))
    await place(here, URL)
    (claimed,) = (await here.claim_deliveries(Room(ROOMY), 1, 30.0)).taken
    assert await here.settle_delivery(claimed, an_outcome("delivered", 200), DELIVERED)
    await here.admit(a_new_job(CLOCK))
    plans = [planned(event, URL) for event in await here.unplanned(EVERYTHING)]
    later = to_ms(CLOCK.now()) + 60_000
    flows = [deliveries._fan_out(plans), delivery_retention._prune(later, 10)]
    commands = [there.prune_deliveries(from_ms(later), 10), there.fan_out(plans)]
    if first == "prune":
        flows, commands = flows[::-1], commands[::-1]

    async with unfinished(here, flows[0]):
        rival = asyncio.create_task(commands[0])
        await session.until_blocked(1)
    commands[1].close()

    assert await asyncio.wait_for(rival, PATIENCE_SECONDS) == 1
    assert [one.url for one in (await there.claim_deliveries(Room(ROOMY), 10, 30.0)).taken] == [URL]
