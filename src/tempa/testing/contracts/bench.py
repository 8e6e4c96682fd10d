"""What the store's suites work on: a fresh store, its clock and its doorbell, and the usual first steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tempa.core.accounts import AccountStore, KeyStore
from tempa.core.ids import new_id
from tempa.jobs.model import Canceled, CancelOutcome, Failed, Status, Verdict
from tempa.jobs.ports import JobStore
from tempa.settlement.ports import SettlementStore
from tempa.testing.contracts.samples import (
    ACCOUNT,
    BAD_FILLET,
    COMPLETED,
    LANE,
    LEASE_SECONDS,
    USAGE,
    a_new_job,
    retried,
)
from tempa.webhooks.model import Message, NewDelivery, Planned
from tempa.webhooks.ports import WebhookStore
from tempa.webhooks.room import Room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tempa.core.events import Event
    from tempa.core.work import Wake
    from tempa.jobs.model import Claimed, Job, Lease
    from tempa.testing.clock import ManualClock
    from tempa.webhooks.model import ClaimedDelivery

ROOMY = 10_000  # slots


class Store(JobStore, WebhookStore, SettlementStore, KeyStore, AccountStore, Protocol):
    """The five ports in one, as the database adapters offer them."""


Grant = Callable[[str, float, int | None], Awaitable[None]]


async def _cannot_grant(account: str, weight: float, running_max: int | None) -> None:
    raise NotImplementedError("this bench was made without a way to set an account's limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreBench:
    """`clock` is the one the store reads; `wake` the one it rings.

    `grant` gives an account its weight and how many of its jobs may run (None: any number).
    """

    store: Store
    clock: ManualClock
    wake: Wake
    grant: Grant = _cannot_grant

    async def admit(self, **new: Any) -> Job:
        """A job that was not there before. `new` as for `a_new_job`."""
        admission = await self.store.admit(a_new_job(self.clock, **new))
        assert admission.verdict is Verdict.ADMITTED
        return admission.job

    async def claim(self, limit: int = 1, *lanes: str, worker: str = "w1") -> list[Claimed]:
        """Up to `limit` leases of 30 s."""
        return await self.store.claim(worker, lanes or (LANE,), limit, LEASE_SECONDS)

    async def start(self, **new: Any) -> Claimed:
        """A job in its first attempt."""
        job = await self.admit(**new)
        (claimed,) = await self.claim(1, job.request.lane)
        assert claimed.job.id == job.id, "start() is for stores in which nothing else waits"
        return claimed

    async def in_status(self, status: Status) -> tuple[Job, Lease]:
        """A job brought to `status` in a lane of its own, and the lease it had on the way."""
        claimed = await self.start(lane=new_id("lane"))
        match status:
            case Status.QUEUED:
                self.let_lapse()
                assert await self.store.take_over(claimed.lease, retried(crash=True))
            case Status.COMPLETED:
                assert await self.store.settle(claimed.lease, COMPLETED)
            case Status.FAILED:
                assert await self.store.settle(claimed.lease, Failed(error=BAD_FILLET, usage=USAGE))
            case Status.CANCELED:
                await self.cancel_running(claimed)
        job = await self.reread(claimed.job)
        assert job.status is status
        return job, claimed.lease

    async def cancel_running(self, claimed: Claimed) -> None:
        """Canceled by its client, and killed by its worker."""
        answer = await self.store.cancel(claimed.job.account, claimed.job.id)
        assert answer is not None
        assert answer[0] is CancelOutcome.REQUESTED
        assert await self.store.settle(claimed.lease, Canceled(usage=USAGE))

    def let_lapse(self) -> None:
        """All leases given so far run out."""
        self.clock.advance(LEASE_SECONDS + 0.001)

    async def reread(self, job: Job) -> Job:
        """The job as it stands now."""
        found = await self.store.job(job.account, job.id)
        assert found is not None
        return found

    async def log(self, job: Job) -> list[Event]:
        """All events of a job."""
        return await self.store.job_events(job.id, 0, 1000)

    async def plan(self, *urls: str, limit: int = 1000) -> int:
        """Fan out all that waits, every event to each of `urls`."""
        events = await self.store.unplanned(limit)
        return await self.store.fan_out([planned(event, *urls) for event in events])

    async def deliveries_to(self, url: str, count: int = 1, account: str = ACCOUNT) -> list[str]:
        """`count` pending deliveries, each of a job of its own; their ids, oldest first."""
        await self.plan()  # what went before is not announced
        jobs = [await self.admit(account=account) for _ in range(count)]
        await self.plan(url)
        found = await self.store.deliveries(
            account, status=None, job_id=None, endpoint_id=None, limit=count, before=None
        )
        assert [delivery.job_id for delivery in reversed(found)] == [job.id for job in jobs]
        return [delivery.id for delivery in reversed(found)]

    async def take(self, limit: int = 1) -> list[ClaimedDelivery]:
        """Claimed deliveries, leased for 30 s, by a deliverer that has room for all."""
        return list((await self.store.claim_deliveries(Room(ROOMY), limit, LEASE_SECONDS)).taken)

    @asynccontextmanager
    async def expect_ring(self, *topics: str) -> AsyncIterator[None]:
        """Each of `topics` is rung by what happens inside, before it returns."""
        with ExitStack() as stack:
            ears = [(topic, stack.enter_context(self.wake.listen(topic))) for topic in topics]
            yield
            for topic, ear in ears:
                assert await ear.wait(0), f"{topic} was not rung"

    @asynccontextmanager
    async def expect_silence(self, *topics: str) -> AsyncIterator[None]:
        """None of `topics` is rung by what happens inside."""
        with self.wake.listen(*topics) as ear:
            yield
            assert not await ear.wait(0), f"one of {topics} was rung"


def planned(event: Event, *urls: str) -> Planned:
    """An event, to be delivered to each of `urls`."""
    message = Message(
        id=event.id,
        account=event.account,
        job_id=event.job_id,
        type=f"cad_generation.{event.type.partition('.')[2]}",
        at=event.at,
        data={"job_id": event.job_id, "tags": {"order": "A-17"}},
        links={"step": (event.job_id or "", "model.step")},
    )
    return Planned(
        event_id=event.id,
        deliveries=tuple(NewDelivery(id=new_id("dlv"), url=url, message=message) for url in urls),
    )


def sequences(events: Sequence[Event]) -> list[int]:
    """Their numbers within the job."""
    return [event.sequence for event in events if event.sequence is not None]


def types(events: Sequence[Event]) -> list[str]:
    """What they tell of."""
    return [event.type for event in events]
