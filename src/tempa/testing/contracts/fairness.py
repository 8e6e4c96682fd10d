"""Contract of `JobStore.claim` where several accounts wait: shares by weight, limits, no flood in the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from tempa.testing.contracts.samples import ACCOUNT, COMPLETED, OTHER_ACCOUNT, retried

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tempa.jobs.model import Claimed, Job
    from tempa.testing.contracts.bench import StoreBench

FLOOD = 1000


async def flood(bench: StoreBench, account: str, count: int, lane: str = "cpu") -> list[Job]:
    """`count` queued jobs of one account, asked for by many callers at once."""
    return list(await asyncio.gather(*(bench.admit(account=account, lane=lane) for _ in range(count))))


async def free_a_slot(bench: StoreBench, running: list[Claimed]) -> Claimed:
    """The job that runs longest ends, and its slot takes the next one."""
    assert await bench.store.settle(running.pop(0).lease, COMPLETED)
    (claimed,) = await bench.claim(1)
    running.append(claimed)
    return claimed


def accounts(claimed: Iterable[Claimed]) -> list[str]:
    """Whose jobs were started, in order."""
    return [one.job.account for one in claimed]


def jain(counts: Sequence[int]) -> float:
    """Jain's fairness index: 1 when all have the same, 1/n when one has everything (Jain et al., 1984)."""
    return sum(counts) ** 2 / (len(counts) * sum(count * count for count in counts))


class FairClaimContract:
    """Accounts in turn. Asks for a bench that can `grant`."""

    async def test_a_job_behind_anothers_flood_starts_within_two_freed_slots(self, bench: StoreBench) -> None:
        await flood(bench, ACCOUNT, FLOOD)
        running = await bench.claim(8)
        late = await bench.admit(account=OTHER_ACCOUNT)

        next_two = [await free_a_slot(bench, running) for _ in range(2)]

        assert late.id in [claimed.job.id for claimed in next_two]

    async def test_the_second_job_behind_a_flood_waits_no_longer_than_the_first(
        self, bench: StoreBench
    ) -> None:
        await flood(bench, ACCOUNT, 100)
        running = await bench.claim(8)
        await flood(bench, OTHER_ACCOUNT, 4)

        starts = accounts([await free_a_slot(bench, running) for _ in range(8)])

        assert Counter(starts) == {ACCOUNT: 4, OTHER_ACCOUNT: 4}

    async def test_one_claim_of_many_is_shared_as_well(self, bench: StoreBench) -> None:
        await flood(bench, ACCOUNT, 20)
        await flood(bench, OTHER_ACCOUNT, 3)

        assert Counter(accounts(await bench.claim(6))) == {ACCOUNT: 3, OTHER_ACCOUNT: 3}
        assert Counter(accounts(await bench.claim(6))) == {ACCOUNT: 6}  # no slot stays empty for fairness

    async def test_twenty_equal_accounts_get_equal_shares(self, bench: StoreBench) -> None:
        names = [f"account-{number:02}" for number in range(20)]
        for place, name in enumerate(names):
            await flood(bench, name, 8 + 2 * place)  # however much each has queued

        starts = Counter(accounts([claimed for _ in range(20) for claimed in await bench.claim(7)]))

        assert starts.total() == 140
        assert jain([starts[name] for name in names]) >= 0.95

    async def test_weights_are_shares(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 3.0, None)
        await bench.grant(OTHER_ACCOUNT, 1.0, None)
        await flood(bench, OTHER_ACCOUNT, 40)
        await flood(bench, ACCOUNT, 40)

        starts = accounts([claimed for _ in range(40) for claimed in await bench.claim(1)])

        assert Counter(starts) == {ACCOUNT: 30, OTHER_ACCOUNT: 10}
        for place in range(0, 40, 4):  # at no time is either far from its share
            assert 3 * place // 4 - 1 <= starts[:place].count(ACCOUNT) <= 3 * place // 4 + 1

    async def test_a_rest_earns_no_credit(self, bench: StoreBench) -> None:
        await bench.admit(account=OTHER_ACCOUNT)
        await flood(bench, ACCOUNT, 60)
        assert len(await bench.claim(40)) == 40  # the other one rests after its first
        await flood(bench, OTHER_ACCOUNT, 20)

        starts = accounts([claimed for _ in range(10) for claimed in await bench.claim(1)])

        assert Counter(starts) == {ACCOUNT: 5, OTHER_ACCOUNT: 5}

    async def test_priorities_order_an_accounts_own_jobs_and_nobody_elses(self, bench: StoreBench) -> None:
        low = await bench.admit(account=OTHER_ACCOUNT, priority=0)
        ordinary = await bench.admit(account=ACCOUNT)
        urgent = [await bench.admit(account=ACCOUNT, priority=9) for _ in range(3)]

        started = [claimed.job.id for _ in range(5) for claimed in await bench.claim(1)]

        assert low.id in started[:2]
        assert [one for one in started if one != low.id] == [*(job.id for job in urgent), ordinary.id]

    async def test_turns_are_counted_across_lanes(self, bench: StoreBench) -> None:
        await flood(bench, ACCOUNT, 10)
        assert len(await bench.claim(4)) == 4
        await flood(bench, ACCOUNT, 10, lane="gpu")
        await flood(bench, OTHER_ACCOUNT, 10, lane="gpu")

        starts = accounts([claimed for _ in range(2) for claimed in await bench.claim(1, "gpu")])

        assert OTHER_ACCOUNT in starts


class RunningMaxContract:
    """No more of an account's jobs run than it may have. Asks for a bench that can `grant`."""

    async def test_an_account_runs_no_more_than_it_may(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 1.0, 2)
        await flood(bench, ACCOUNT, 5)
        await flood(bench, OTHER_ACCOUNT, 3)

        assert Counter(accounts(await bench.claim(10))) == {ACCOUNT: 2, OTHER_ACCOUNT: 3}
        assert await bench.claim(10) == []

    async def test_an_end_makes_room_for_one_however_it_ends(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 1.0, 1)
        await flood(bench, ACCOUNT, 4)
        (first,) = await bench.claim(10)

        assert await bench.store.settle(first.lease, COMPLETED)
        (second,) = await bench.claim(10)
        bench.let_lapse()
        assert await bench.claim(10) == []  # until somebody takes over it may still be running
        assert await bench.store.take_over(second.lease, retried(crash=True))
        (third,) = await bench.claim(10)
        assert await bench.store.cancel(ACCOUNT, third.job.id)

        assert await bench.claim(10) == []  # asked to stop, and not stopped yet

    async def test_it_is_one_limit_for_all_lanes(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 1.0, 3)
        await flood(bench, ACCOUNT, 2)
        await flood(bench, ACCOUNT, 5, lane="gpu")

        assert len(await bench.claim(10, "cpu")) == 2
        assert len(await bench.claim(10, "gpu")) == 1

    async def test_none_may_run_when_the_limit_is_zero(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 1.0, 0)
        await flood(bench, ACCOUNT, 2)
        free = await bench.admit(account=OTHER_ACCOUNT)

        assert [claimed.job.id for claimed in await bench.claim(10)] == [free.id]

    async def test_it_holds_when_many_claim_at_once(self, bench: StoreBench) -> None:
        await bench.grant(ACCOUNT, 1.0, 7)
        await flood(bench, ACCOUNT, 40)
        await flood(bench, OTHER_ACCOUNT, 5)

        takes = await asyncio.gather(*(bench.claim(4, worker=f"w{number}") for number in range(12)))

        starts = Counter(accounts(claimed for take in takes for claimed in take))
        assert starts == {ACCOUNT: 7, OTHER_ACCOUNT: 5}
