"""Several processes on one database: who comes first, and that nobody else does."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.postgres import admission
from tempa.core.clock import SystemClock
from tempa.jobs.model import Beat, BeatAnswer, Failed, Status, Verdict
from tempa.testing.contracts.bench import types
from tempa.testing.contracts.samples import (
    ACCOUNT,
    BAD_FILLET,
    COMPLETED,
    LANE,
    LEASE_SECONDS,
    OTHER_ACCOUNT,
    USAGE,
    a_key,
    a_new_job,
    retried,
)
from tests.integration.postgres.sessions import PATIENCE_SECONDS, unfinished

if TYPE_CHECKING:
    from tempa.adapters.stores.postgres.store import PostgresStore
    from tempa.jobs.model import Admission, Claimed, NewJob
    from tempa.testing.contracts.store import StoreBench
    from tests.integration.postgres.sessions import Session

CLOCK = SystemClock()
LOST = BeatAnswer(held=False, cancel_requested=False)

Pair = tuple["StoreBench", "StoreBench"]


async def admit_all(stores: tuple[PostgresStore, ...], news: list[NewJob]) -> list[Admission]:
    """At once, dealt out to the stores."""
    return list(
        await asyncio.gather(*(store.admit(new) for store, new in zip(cycle(stores), news, strict=False)))
    )


async def test_sixty_four_requests_with_one_key_are_one_job(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    news = [a_new_job(CLOCK, key=a_key()) for _ in range(64)]

    admissions = await admit_all((here, there), news)

    assert Counter(one.verdict for one in admissions) == {
        Verdict.ADMITTED: 1,
        Verdict.REPLAYED: 63,
    }
    assert {one.job.id for one in admissions} == {await session.value("select id from job")}
    assert await session.value("select count(*) from event") == 1


async def test_rivals_with_one_key_for_other_work_are_refused(
    here: PostgresStore, there: PostgresStore
) -> None:
    news = [a_new_job(CLOCK, key=a_key(fingerprint=f"f{number % 2}")) for number in range(32)]

    verdicts = Counter(one.verdict for one in await admit_all((here, there), news))

    assert verdicts == {Verdict.ADMITTED: 1, Verdict.REPLAYED: 15, Verdict.REUSED: 16}


async def test_a_key_that_is_free_again_passes_to_one_of_many(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    """A derived key, whose job failed."""
    key = a_key(derived=True)
    failed = (await here.admit(a_new_job(CLOCK, key=key))).job
    (claimed,) = await here.claim("w1", [LANE], 1, LEASE_SECONDS)
    assert await here.settle(claimed.lease, Failed(error=BAD_FILLET, usage=USAGE))

    admissions = await admit_all((here, there), [a_new_job(CLOCK, key=key) for _ in range(32)])

    assert Counter(one.verdict for one in admissions) == {
        Verdict.ADMITTED: 1,
        Verdict.REPLAYED: 31,
    }
    (new,) = {one.job.id for one in admissions}
    assert new != failed.id
    assert await session.value("select count(*) from job") == 2


@pytest.mark.parametrize("ends_well", [True, False])
async def test_a_key_that_another_process_is_just_taking_is_waited_for(
    here: PostgresStore, there: PostgresStore, session: Session, *, ends_well: bool
) -> None:
    """Its transaction is open: only when it ends is it known whether the key is taken."""
    theirs, ours = a_new_job(CLOCK, key=a_key()), a_new_job(CLOCK, key=a_key())

    with contextlib.suppress(ZeroDivisionError):
        async with unfinished(there, admission.admit_all([theirs], None)):
            asking = asyncio.create_task(here.admit(ours))
            await session.until_blocked(1)
            if not ends_well:
                raise ZeroDivisionError

    answer = await asyncio.wait_for(asking, PATIENCE_SECONDS)
    told = (Verdict.REPLAYED, theirs.id) if ends_well else (Verdict.ADMITTED, ours.id)
    assert (answer.verdict, answer.job.id) == told


async def test_rival_claims_share_no_job_break_no_limit_and_run_no_twins(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    await session.run(f"insert into account values ('{ACCOUNT}', 1, 1.0, 5)")  # noqa: S608
    news = [a_new_job(CLOCK, account=ACCOUNT) for _ in range(30)]
    news += [a_new_job(CLOCK, account=OTHER_ACCOUNT, work_key=f"{number % 8}") for number in range(40)]
    await admit_all((here, there), news)

    takes = await asyncio.gather(
        *(
            store.claim(f"w{number}", [LANE], 4, LEASE_SECONDS)
            for number in range(8)
            for store in (here, there)
        )
    )

    taken = [claimed for take in takes for claimed in take]
    assert len({claimed.job.id for claimed in taken}) == len(taken)
    assert Counter(claimed.job.account for claimed in taken) == {ACCOUNT: 5, OTHER_ACCOUNT: 8}
    twins = [claimed.job.work_key for claimed in taken if claimed.job.account == OTHER_ACCOUNT]
    assert sorted(twins, key=str) == [str(number) for number in range(8)]


async def test_rival_workers_drain_a_queue_once_and_within_its_limits(
    here: PostgresStore, there: PostgresStore, session: Session
) -> None:
    await session.run(f"insert into account values ('{ACCOUNT}', 1, 1.0, 3)")  # noqa: S608
    news = [a_new_job(CLOCK, account=ACCOUNT) for _ in range(60)]
    news += [a_new_job(CLOCK, account=OTHER_ACCOUNT, work_key=f"{number % 20}") for number in range(60)]
    await admit_all((here, there), news)
    running: dict[str, Claimed] = {}
    ended: list[str] = []

    def check() -> None:
        counts = Counter(claimed.job.account for claimed in running.values())
        twins = Counter(claimed.job.work_key for claimed in running.values() if claimed.job.work_key)
        assert counts[ACCOUNT] <= 3
        assert not twins or max(twins.values()) == 1

    async def work(store: PostgresStore, worker: str) -> None:
        while len(ended) < len(news):
            taken = await store.claim(worker, [LANE], 3, LEASE_SECONDS)
            running.update({claimed.job.id: claimed for claimed in taken})
            check()
            for claimed in taken:
                del running[claimed.job.id]  # before it ends: what runs may only be underestimated
                assert await store.settle(claimed.lease, COMPLETED)
                ended.append(claimed.job.id)

    async with asyncio.timeout(60):
        await asyncio.gather(*(work(store, f"w{n}") for n in range(3) for store in (here, there)))

    assert sorted(ended) == sorted(new.id for new in news)
    assert await session.value("select count(*) from attempt") == len(news)


@pytest.mark.parametrize("first", ["settle", "take over"])
async def test_of_a_late_end_and_a_takeover_the_first_wins(
    benches: Pair, session: Session, first: str
) -> None:
    worker, rescuer = benches
    claimed = await worker.start()
    worker.let_lapse()
    await session.hold(claimed.job.id)
    late = worker.store.settle(claimed.lease, COMPLETED)
    rescue = rescuer.store.take_over(claimed.lease, retried(crash=True))

    answers = await session.in_line(*((late, rescue) if first == "settle" else (rescue, late)))

    assert answers == [True, False]
    endings = {"settle": ["job.completed"], "take over": ["job.retrying"]}
    assert types(await worker.log(claimed.job))[2:] == endings[first]


@pytest.mark.parametrize("first", ["beat", "take over"])
async def test_of_a_late_beat_and_a_takeover_the_first_wins(
    benches: Pair, session: Session, first: str
) -> None:
    """A rescuer that has read the lease before the beat came must see the beat in its own write."""
    worker, rescuer = benches
    claimed = await worker.start()
    worker.let_lapse()
    assert [lapsed.lease for lapsed in await rescuer.store.expired(10)] == [claimed.lease]
    await session.hold(claimed.job.id)
    late = worker.store.beat([Beat(lease=claimed.lease)], LEASE_SECONDS)
    rescue = rescuer.store.take_over(claimed.lease, retried(crash=True))

    answers = await session.in_line(*((late, rescue) if first == "beat" else (rescue, late)))

    held = BeatAnswer(held=True, cancel_requested=False)
    assert answers == ([[held], False] if first == "beat" else [True, [LOST]])
    job = await worker.reread(claimed.job)
    assert job.status is (Status.PROCESSING if first == "beat" else Status.QUEUED)


@pytest.mark.parametrize("first", ["cancel", "settle"])
async def test_of_a_cancel_and_a_retry_that_meet_none_is_lost(
    benches: Pair, session: Session, first: str
) -> None:
    """The retry has not seen the wish, but its write comes after it: the job does not come back."""
    worker, client = benches
    claimed = await worker.start()
    await session.hold(claimed.job.id)
    wish = client.store.cancel(ACCOUNT, claimed.job.id)
    end = worker.store.settle(claimed.lease, retried())

    await session.in_line(*((wish, end) if first == "cancel" else (end, wish)))

    assert (await worker.reread(claimed.job)).status is Status.CANCELED
    assert types(await worker.log(claimed.job))[-1] == "job.canceled"


async def test_a_claim_passes_over_a_job_that_a_cancel_holds(benches: Pair, session: Session) -> None:
    worker, _ = benches
    held, free = await worker.admit(priority=9), await worker.admit()
    await session.hold(held.id)

    taken = await worker.claim(2)

    assert [claimed.job.id for claimed in taken] == [free.id]
