"""Contract of `AccountStore`, and of `JobStore.admit` for an account with a limit."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.accounts import Account, AccountFull
from tempa.jobs.model import (
    Canceled,
    Completed,
    Failed,
    JobFilter,
    Released,
    Retried,
    Status,
    Usage,
    Verdict,
)
from tempa.testing.contracts.samples import (
    ACCOUNT,
    BAD_FILLET,
    COMPLETED,
    OTHER_ACCOUNT,
    RESULT,
    WORKER_LOST,
    a_key,
    a_new_job,
    retried,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tempa.jobs.model import Admission, NewJob
    from tempa.testing.contracts.bench import StoreBench

DAY_SECONDS = 24 * 3600.0


def a_bounded_job(bench: StoreBench, queued_max: int | None, **new: Any) -> NewJob:
    """An admission for an account that may have so many jobs."""
    return a_new_job(bench.clock, queued_max=queued_max, **new)


async def outcome(bench: StoreBench, new: NewJob) -> Admission | AccountFull:
    """What became of an admission."""
    try:
        return await bench.store.admit(new)
    except AccountFull as full:
        return full


async def outcomes(bench: StoreBench, jobs: Iterable[NewJob]) -> list[Admission | AccountFull]:
    """What became of these, asked for all at once."""
    return await asyncio.gather(*(outcome(bench, new) for new in jobs))


async def stored(bench: StoreBench, account: str = ACCOUNT) -> int:
    """How many jobs the account has, in whatever state."""
    return len(await bench.store.jobs(account, JobFilter(), 1000, None))


class QueuedMaxContract:
    """No more jobs of an account wait or run than it may have, whoever asks for them when."""

    async def test_the_one_that_is_too_many_is_refused_and_leaves_nothing(self, bench: StoreBench) -> None:
        for number in range(3):
            await bench.store.admit(a_bounded_job(bench, 3, key=a_key(f"k{number}")))
        late = a_bounded_job(bench, 3, key=a_key("late"))

        with pytest.raises(AccountFull) as caught:
            await bench.store.admit(late)

        assert caught.value.jobs == 3
        assert await stored(bench) == 3
        assert await bench.store.job_events(late.id, 0, 10) == []
        # Its key was not bound: it stands for another request as soon as there is room.
        admission = await bench.store.admit(a_bounded_job(bench, 4, key=a_key("late", fingerprint="f2")))
        assert admission.verdict is Verdict.ADMITTED

    async def test_of_many_at_once_exactly_so_many_get_in(self, bench: StoreBench) -> None:
        answers = await outcomes(bench, [a_bounded_job(bench, 7) for _ in range(40)])

        assert sum(isinstance(answer, AccountFull) for answer in answers) == 33
        assert await stored(bench) == 7

    async def test_replays_take_no_room(self, bench: StoreBench) -> None:
        """Among many at once, too: what stands is found, and the places are for those that are new."""
        old = [a_bounded_job(bench, 6, key=a_key(f"old{n}")) for n in range(4)]
        for new in old:
            await bench.store.admit(new)
        again = [a_bounded_job(bench, 6, key=a_key(f"old{n}")) for n in range(4)]
        fresh = [a_bounded_job(bench, 6, key=a_key(f"new{n}")) for n in range(5)]

        answers = await outcomes(bench, [*again, *fresh])

        replayed, rest = answers[:4], answers[4:]
        assert [isinstance(one, AccountFull) or one.job.id for one in replayed] == [new.id for new in old]
        assert sum(isinstance(answer, AccountFull) for answer in rest) == 3
        assert await stored(bench) == 6

    async def test_what_stands_under_a_key_is_found_when_there_is_no_room(self, bench: StoreBench) -> None:
        first = await bench.store.admit(a_bounded_job(bench, 1, key=a_key()))

        again = await bench.store.admit(a_bounded_job(bench, 0, key=a_key()))
        other = await bench.store.admit(a_bounded_job(bench, 0, key=a_key(fingerprint="f2")))

        assert (again.verdict, again.job.id) == (Verdict.REPLAYED, first.job.id)
        assert other.verdict is Verdict.REUSED

    async def test_jobs_that_run_or_are_tried_again_count_and_those_that_ended_do_not(
        self, bench: StoreBench
    ) -> None:
        running = await bench.start(lane="a")
        delayed = await bench.start(lane="b")
        assert await bench.store.settle(delayed.lease, retried(60.0))
        ended = await bench.start(lane="c", priority=9)
        with pytest.raises(AccountFull) as caught:
            await bench.store.admit(a_bounded_job(bench, 3))
        assert caught.value.jobs == 3

        assert await bench.store.settle(ended.lease, COMPLETED)
        third = (await bench.store.admit(a_bounded_job(bench, 3, lane="d"))).job
        with pytest.raises(AccountFull):
            await bench.store.admit(a_bounded_job(bench, 3))
        await bench.store.cancel(ACCOUNT, third.id)
        await bench.store.admit(a_bounded_job(bench, 3))

        assert (await bench.reread(running.job)).status is Status.PROCESSING

    async def test_an_account_is_full_for_itself_alone(self, bench: StoreBench) -> None:
        await bench.store.admit(a_bounded_job(bench, 1))

        answers = await outcomes(
            bench,
            [
                a_bounded_job(bench, 1),
                a_bounded_job(bench, 1, account=OTHER_ACCOUNT),
                a_bounded_job(bench, None, account="nobody limits me"),
            ],
        )

        assert [isinstance(answer, AccountFull) for answer in answers] == [True, False, False]

    async def test_a_limit_that_was_lowered_is_told_with_what_there_is(self, bench: StoreBench) -> None:
        for _ in range(5):
            await bench.admit()

        with pytest.raises(AccountFull) as caught:
            await bench.store.admit(a_bounded_job(bench, 2))

        assert caught.value.jobs == 5


class ComputeContract:
    """What attempts cost is summed by account and day, in the transaction that ends them."""

    async def test_every_ending_adds_what_its_attempt_cost(self, bench: StoreBench) -> None:
        cost = Usage(compute_time_ms=1500)
        for ending in (
            Completed(result=RESULT, usage=cost),
            Failed(error=BAD_FILLET, usage=cost),
            Canceled(usage=cost),
            Retried(error=WORKER_LOST, delay_seconds=3600.0, crash=False, usage=cost),
        ):
            claimed = await bench.start()
            assert await bench.store.settle(claimed.lease, ending)
        released = await bench.start()
        assert await bench.store.settle(released.lease, Released())

        assert await bench.store.compute_seconds_today(ACCOUNT) == 6.0
        assert await bench.store.compute_seconds_today(OTHER_ACCOUNT) == 0.0

    async def test_who_is_fenced_off_adds_nothing(self, bench: StoreBench) -> None:
        claimed = await bench.start()
        bench.let_lapse()
        assert await bench.store.take_over(claimed.lease, retried(crash=True))
        before = await bench.store.compute_seconds_today(ACCOUNT)

        assert not await bench.store.settle(claimed.lease, COMPLETED)

        assert await bench.store.compute_seconds_today(ACCOUNT) == before

    async def test_settlements_at_once_are_all_counted(self, bench: StoreBench) -> None:
        for number in range(12):
            await bench.admit(account=(ACCOUNT, OTHER_ACCOUNT, "third")[number % 3])
        claimed = await bench.claim(12)
        ending = Completed(result=RESULT, usage=Usage(compute_time_ms=250))

        assert all(await asyncio.gather(*(bench.store.settle(one.lease, ending) for one in claimed)))

        for account in (ACCOUNT, OTHER_ACCOUNT, "third"):
            assert await bench.store.compute_seconds_today(account) == 1.0

    async def test_a_day_begins_at_midnight_utc(self, bench: StoreBench) -> None:
        now = bench.clock.now()
        tomorrow = datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)
        ending = Completed(result=RESULT, usage=Usage(compute_time_ms=2000))
        bench.clock.jump(tomorrow - now - timedelta(milliseconds=1))
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, ending)
        assert await bench.store.compute_seconds_today(ACCOUNT) == 2.0

        bench.clock.jump(timedelta(milliseconds=1))
        assert await bench.store.compute_seconds_today(ACCOUNT) == 0.0
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, ending)
        assert await bench.store.compute_seconds_today(ACCOUNT) == 2.0

    async def test_only_days_before_yesterday_are_forgotten(self, bench: StoreBench) -> None:
        for _ in range(3):
            claimed = await bench.start()
            assert await bench.store.settle(claimed.lease, COMPLETED)
        bench.clock.advance(DAY_SECONDS)
        assert await bench.store.forget_days(10) == 0
        bench.clock.advance(DAY_SECONDS)
        claimed = await bench.start()
        assert await bench.store.settle(claimed.lease, COMPLETED)

        assert await bench.store.forget_days(2) == 2
        assert await bench.store.forget_days(2) == 1
        assert await bench.store.forget_days(2) == 0
        assert await bench.store.compute_seconds_today(ACCOUNT) == 0.012


class AccountContract:
    """Limits are set one by one, and read back."""

    async def test_an_account_comes_into_being_with_its_first_limit(self, bench: StoreBench) -> None:
        assert await bench.store.account(ACCOUNT) is None

        made = await bench.store.set_account(ACCOUNT, {"queued_max": 100, "weight": 2.5})

        expected = Account(id=ACCOUNT, created_at=bench.clock.now(), weight=2.5, queued_max=100)
        assert made == expected
        assert await bench.store.account(ACCOUNT) == expected

    async def test_what_is_not_named_stays_and_none_gives_the_default_back(self, bench: StoreBench) -> None:
        everything: dict[str, Any] = {
            "weight": 3.0,
            "running_max": 4,
            "queued_max": 50,
            "requests_per_second": 7.5,
            "compute_seconds_per_day": 3600.0,
        }
        await bench.store.set_account(ACCOUNT, everything)

        changed = await bench.store.set_account(ACCOUNT, {"queued_max": None, "running_max": 0})

        created_at = bench.clock.now()
        assert changed == Account(
            id=ACCOUNT, created_at=created_at, **(everything | {"queued_max": None, "running_max": 0})
        )
        assert await bench.store.account(ACCOUNT) == changed

    async def test_two_who_set_different_limits_do_not_undo_each_other(self, bench: StoreBench) -> None:
        changes: list[dict[str, Any]] = [
            {"queued_max": 9},
            {"running_max": 8},
            {"requests_per_second": 7.0},
            {"weight": 6.0},
        ]

        await asyncio.gather(*(bench.store.set_account(ACCOUNT, change) for change in changes))

        account = await bench.store.account(ACCOUNT)
        assert account is not None
        assert (account.queued_max, account.running_max) == (9, 8)
        assert (account.requests_per_second, account.weight) == (7.0, 6.0)

    async def test_the_limits_that_were_set_hold_for_claims(self, bench: StoreBench) -> None:
        await bench.store.set_account(ACCOUNT, {"running_max": 1})
        for _ in range(3):
            await bench.admit()

        assert len(await bench.claim(3)) == 1

    async def test_all_are_listed_with_what_they_used_today(self, bench: StoreBench) -> None:
        await bench.store.set_account("b", {"queued_max": 1})
        await bench.store.set_account("a", {"queued_max": 2})
        claimed = await bench.start(account="b")
        assert await bench.store.settle(claimed.lease, COMPLETED)

        listed = await bench.store.accounts()

        assert [(account.id, account.queued_max, used) for account, used in listed] == [
            ("a", 2, 0.0),
            ("b", 1, 0.012),
        ]
