"""The store beside its model: the same calls to both, and after each the same answers and the same state."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from tempa.core.clock import to_ms
from tempa.jobs.model import (
    Beat,
    CancelOutcome,
    JobFilter,
    Lease,
    Stage,
    Verdict,
)
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    DAY_SECONDS,
    DELIVERED,
    LANE,
    LEASE_SECONDS,
    TOO_LATE,
    a_key,
    a_new_job,
    an_outcome,
)
from tempa.webhooks.room import Room
from tests.simulation.endings import ANY_ENDING, ENDINGS, TAKEOVERS
from tests.simulation.model import TERMINAL, Model, ModelJob, assert_alike, without_removal

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tempa.core.events import Event
    from tempa.jobs.model import Ending, Job
    from tests.simulation.places import Place

URL = "https://hooks.example/tempa"
ALL = 1000
MARK_SECONDS = 1.0  # a claim on PostgreSQL that looks from the front sees all there is

JOB_IDS: Bundle[str] = Bundle("job_ids")
LEASES: Bundle[Lease] = Bundle("leases")


class StoreMachine(RuleBasedStateMachine):
    """Leases of the past stay in use: every write is tried by zombies, too."""

    place: Place

    @initialize(target=JOB_IDS, priorities=st.lists(st.integers(4, 6), min_size=2, max_size=4))
    def begin(self, priorities: list[int]) -> Any:
        """A store in which some jobs wait."""
        self.runner = asyncio.Runner()
        self.clock = ManualClock()
        self.place = self.new_place()
        self.model = Model()
        self.store = self.do(self.place.open(self.clock))
        self.final: dict[str, Job] = {}
        self.delivered: set[str] = set()
        self.touched: set[str] = set()
        return multiple(*(self._submit(priority=priority) for priority in priorities))

    def new_place(self) -> Place:
        """A fresh one."""
        raise NotImplementedError

    def do(self, answer: Awaitable[Any]) -> Any:
        """Wait for the store's answer."""

        async def wait() -> Any:
            return await answer

        self.model.transaction += 1

        return self.runner.run(wait())

    @property
    def now(self) -> int:
        return to_ms(self.clock.now())

    @property
    def tick(self) -> int:
        return self.now if self.place.shared else int(self.clock.monotonic() * 1000)

    @property
    def lease_until(self) -> int:
        return self.tick + round(LEASE_SECONDS * 1000)

    def job(self, job_id: str) -> ModelJob:
        self.touched.add(job_id)
        return self.model.jobs[job_id]

    @rule(
        target=JOB_IDS,
        priority=st.integers(4, 6),
        work_key=st.sampled_from([None, "w0", "w0", "w1"]),
        deadline_seconds=st.sampled_from([None, None, 20.0]),
    )
    def submit(self, priority: int, work_key: str | None, deadline_seconds: float | None) -> str:
        """A new request without a key."""
        return self._submit(priority=priority, work_key=work_key, deadline_seconds=deadline_seconds)

    @rule(target=JOB_IDS, key=st.sampled_from(["k0", "k1"]), fingerprint=st.sampled_from(["f0", "f0", "f1"]))
    def submit_with_key(self, key: str, fingerprint: str) -> str:
        """A new request; or a replay, or a key that stands for another request."""
        return self._submit(key, fingerprint)

    @rule(target=JOB_IDS, key=st.sampled_from(["k0", "k1"]), ending=ANY_ENDING)
    def submit_with_key_a_day_after_its_end(self, key: str, ending: Ending) -> Any:
        """The key is free again, if what was admitted under it has ended."""
        first = self._submit(key, "f0")
        for lease in self._claim(3, patient=False):
            self._settle(lease, ending)
        self.clock.advance(DAY_SECONDS)
        return multiple(first, self._submit(key, "f1"))

    def _submit(
        self,
        key: str | None = None,
        fingerprint: str = "f0",
        priority: int = 5,
        work_key: str | None = None,
        deadline_seconds: float | None = None,
    ) -> str:
        new = a_new_job(
            self.clock,
            key=None if key is None else a_key(key, fingerprint=fingerprint),
            work_key=work_key,
            priority=priority,
            deadline_seconds=deadline_seconds,
        )
        admission = self.do(self.store.admit(new))
        holder = self.model.holder(key, self.now)
        if holder is not None:
            same = holder.fingerprint == fingerprint
            assert admission.verdict is (Verdict.REPLAYED if same else Verdict.REUSED)
            assert admission.job.id == holder.id
            return holder.id
        assert (admission.verdict, admission.job.id) == (Verdict.ADMITTED, new.id)
        self.model.admit(
            ModelJob(
                id=new.id,
                place=len(self.model.jobs),
                key=key,
                fingerprint=fingerprint,
                priority=priority,
                work_key=work_key,
                run_at=self.now,
                deadline_at=None if new.deadline_at is None else to_ms(new.deadline_at),
                retained_until=to_ms(new.retained_until),
            )
        )
        self.touched.add(new.id)
        return new.id

    @rule(target=LEASES, limit=st.integers(1, 3), patient=st.booleans())
    def claim(self, limit: int, *, patient: bool) -> Any:
        """By a worker that has waited for a second, or by one that has not."""
        return multiple(*self._claim(limit, patient=patient))

    @rule(target=LEASES, limit=st.integers(1, 3), ending=ANY_ENDING)
    def work(self, limit: int, ending: Ending) -> Any:
        """Claim, and come to an end at once. The leases are used again, by zombies."""
        leases = self._claim(limit, patient=False)
        for lease in leases:
            self._settle(lease, ending)
        return multiple(*leases)

    @rule(target=LEASES, ending=st.sampled_from(TAKEOVERS), limit=st.integers(1, 2))
    def lose_workers(self, ending: Ending, limit: int) -> Any:
        """Claim, fall silent, be taken over; who wakes up again has these leases."""
        leases = self._claim(limit, patient=True)
        self.clock.advance(LEASE_SECONDS)
        self._rescue(ending, limit)
        return multiple(*leases, *self._claim(limit, patient=False))

    @precondition(lambda self: self.reclaimed())
    @rule(ending=ANY_ENDING)
    def wake_zombies(self, ending: Ending) -> None:
        """Whoever had these jobs before has come to an end, too."""
        for job in self.reclaimed():
            before = Lease(job.id, job.epoch - 1)
            self._beat(before, 1, None)
            self._settle(before, ending)
            assert not self.do(self.store.take_over(before, ending))

    def reclaimed(self) -> list[ModelJob]:
        """Jobs in a second attempt, or a later one."""
        return [job for job in self.model.processing() if job.epoch > 1]

    def _claim(self, limit: int, *, patient: bool) -> list[Lease]:
        if patient:
            self.clock.advance(MARK_SECONDS)
        due = [job.id for job in self.model.due(self.now)]
        claimed = self.do(self.store.claim("w", [LANE], limit, LEASE_SECONDS))
        ids = [one.job.id for one in claimed]
        assert len(ids) <= limit
        assert ids == [job_id for job_id in due if job_id in ids], "not what is due, or out of turn"
        if patient or not self.place.shared:
            assert ids[:1] == due[:1], "the first in turn was passed over"
        for one in claimed:
            job = self.job(one.job.id)
            self.model.claim(job, self.lease_until)
            assert one.lease == Lease(job.id, job.epoch)
        return [one.lease for one in claimed]

    @rule(lease=LEASES, stages=st.integers(0, 2), fraction=st.sampled_from([None, 0.5]))
    def beat(self, lease: Lease, stages: int, fraction: float | None) -> None:
        """A sign of life, with what was reached."""
        self._beat(lease, stages, fraction)

    def _beat(self, lease: Lease, stages: int, fraction: float | None) -> None:
        reached = tuple(Stage(name=f"s{n}", at=self.clock.now()) for n in range(stages))
        beat = Beat(lease=lease, stages=reached, fraction=fraction)
        (answer,) = self.do(self.store.beat([beat], LEASE_SECONDS))
        job = self.job(lease.job_id)
        held = job.holds(lease)
        assert (answer.held, answer.cancel_requested) == (held, held and job.cancel_requested)
        if held:
            job.lease_until = self.lease_until
            self.model.note(job, *["job.stage"] * stages)

    @rule(lease=LEASES, ending=ANY_ENDING)
    def settle(self, lease: Lease, ending: Ending) -> None:
        """Complete, fail, retry, cancel or hand back; fenced off, if the lease is not the job's."""
        self._settle(lease, ending)

    def _settle(self, lease: Lease, ending: Ending) -> None:
        written = self.do(self.store.settle(lease, ending))
        job = self.job(lease.job_id)
        assert written == job.holds(lease)
        if written:
            self.model.end(job, ending, self.now)

    @rule(job_id=JOB_IDS)
    def cancel(self, job_id: str) -> None:
        """By its client, whatever has become of it."""
        self._cancel(job_id)

    def _cancel(self, job_id: str) -> None:
        outcome, _ = self.do(self.store.cancel(ACCOUNT, job_id))
        assert outcome == CancelOutcome(self.model.cancel(self.job(job_id), self.now))

    @precondition(lambda self: self.model.processing())
    @rule(ending=st.sampled_from([None, *ENDINGS]))
    def cancel_one_that_runs(self, ending: Ending | None) -> None:
        """Its worker goes on, or has just come to an end that it had chosen before."""
        job = self.model.processing()[-1]
        self._cancel(job.id)
        if ending is not None:
            self._settle(Lease(job.id, job.epoch), ending)

    @precondition(lambda self: self.model.lapsed(self.tick))
    @rule(ending=st.sampled_from(TAKEOVERS), most=st.integers(1, 3))
    def rescue(self, ending: Ending, most: int) -> None:
        """Take over some of what has run out."""
        self._rescue(ending, most)

    def _rescue(self, ending: Ending, most: int) -> None:
        found = {one.job.id: one.lease for one in self.do(self.store.expired(ALL))}
        assert found.keys() == {job.id for job in self.model.lapsed(self.tick)}
        for job_id, lease in list(found.items())[:most]:
            assert self.do(self.store.take_over(lease, ending))
            self.model.end(self.job(job_id), ending, self.now)

    @rule(lease=LEASES, ending=st.sampled_from(TAKEOVERS))
    def take_over_too_early(self, lease: Lease, ending: Ending) -> None:
        """A rescuer that looked before the last beat."""
        job = self.job(lease.job_id)
        lapsed = job.holds(lease) and job in self.model.lapsed(self.tick)
        assert self.do(self.store.take_over(lease, ending)) == lapsed
        if lapsed:
            self.model.end(job, ending, self.now)

    @precondition(lambda self: self.model.alive(self.tick))
    @rule(ending=st.sampled_from(TAKEOVERS))
    def take_over_from_who_lives(self, ending: Ending) -> None:
        """Of all that hold a lease, the one that was claimed last."""
        job = self.model.alive(self.tick)[-1]
        assert not self.do(self.store.take_over(Lease(job.id, job.epoch), ending))

    @precondition(lambda self: self.model.overdue(self.now))
    @rule()
    def expire(self) -> None:
        """Fail what waited too long."""
        overdue = self.do(self.store.overdue(ALL))
        assert {job.id for job in overdue} == {job.id for job in self.model.overdue(self.now)}
        for found in overdue:
            assert self.do(self.store.fail_queued(found.id, TOO_LATE))
            self.model.finish(self.job(found.id), "failed", self.now)

    @rule(job_id=JOB_IDS)
    def fail_one_that_waits(self, job_id: str) -> None:
        """By someone who thinks that it is still queued."""
        job = self.job(job_id)
        waits = job.status == "queued"
        assert self.do(self.store.fail_queued(job_id, TOO_LATE)) == waits
        if waits:
            self.model.finish(job, "failed", self.now)

    @rule(seconds=st.sampled_from([0.001, 0.5, 7.0, LEASE_SECONDS, 90_000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; deliveries whose deliverer fell silent are free again."""
        self.clock.advance(seconds)
        self.do(self.store.free_expired_deliveries())

    @rule(hours=st.sampled_from([-30, -1, 1, 30]))
    def jump(self, hours: int) -> None:
        """The wall clock is set."""
        self.clock.jump(timedelta(hours=hours))

    @rule()
    def restart(self) -> None:
        """A new store on the same data. Where one process has it alone, the dead one's leases are void."""
        self.do(self.store.close())
        self.store = self.do(self.place.open(self.clock))
        if not self.place.shared:
            running = self.model.processing()
            assert self.do(self.store.void_leases()) == len(running)
            self.do(self.store.void_delivery_leases())
            for job in running:
                job.lease_until = 0
            assert {one.job.id for one in self.do(self.store.expired(ALL))} == {job.id for job in running}

    @precondition(lambda self: self.model.unplanned)
    @rule(most=st.integers(1, 20))
    def fan_out(self, most: int) -> None:
        """Give events their places, and deliveries to those that tell of an end; and do it again."""
        events: list[Event] = self.do(self.store.unplanned(most))
        assert len(events) == min(most, len(self.model.unplanned))
        self.model.plan([(event.job_id or "", event.sequence or 0) for event in events])
        plans = [
            planned(event, *([URL] if event.type.removeprefix("job.") in TERMINAL else []))
            for event in events
        ]
        assert self.do(self.store.fan_out(plans)) == sum(len(plan.deliveries) for plan in plans)
        assert self.do(self.store.fan_out(plans)) == 0

    @rule(limit=st.integers(1, 3), settled=st.booleans())
    def deliver(self, limit: int, *, settled: bool) -> None:
        """Claim deliveries, and write that they arrived; or die with them."""
        claim = self.do(self.store.claim_deliveries(Room(ALL), limit, LEASE_SECONDS))
        for one in claim.taken:
            assert one.message.job_id not in self.delivered, "it was delivered before"
            assert self.model.jobs[one.message.job_id].terminal
            if settled:
                outcome = an_outcome("delivered", 200)
                assert self.do(self.store.settle_delivery(one, outcome, DELIVERED))
                assert not self.do(self.store.settle_delivery(one, outcome, DELIVERED))
                self.delivered.add(one.message.job_id)

    @rule(job_id=JOB_IDS)
    def remove(self, job_id: str) -> None:
        job = self.job(job_id)
        assert self.do(self.store.mark_removed(ACCOUNT, job_id)) == job.terminal
        job.removed = job.terminal

    @invariant()
    def jobs_are_as_they_ought_to_be(self) -> None:
        found = self.do(self.store.jobs(ACCOUNT, JobFilter(), ALL, None))
        assert [job.id for job in reversed(found)] == list(self.model.jobs)
        for job in found:
            assert_alike(job, self.model.jobs[job.id])
            self._assert_final(job)
        counted = self.do(self.store.counts())
        assert {status: count for (status, _), count in counted.items()} == self.model.counts()

    def _assert_final(self, job: Job) -> None:
        """Terminal is final: not a field changes, but that its files may be removed."""
        if job.status.terminal:
            first = self.final.setdefault(job.id, job)
            assert without_removal(job) == without_removal(first)
            assert (job.result is not None) == (job.status == "completed")

    @invariant()
    def logs_have_no_gaps(self) -> None:
        for job_id in self.touched & self.model.jobs.keys():
            events = self.do(self.store.job_events(job_id, 0, ALL))
            log = self.model.jobs[job_id].log
            assert [event.type for event in events] == log
            assert [event.sequence for event in events] == list(range(1, len(log) + 1))
        self.touched.clear()

    @invariant()
    def the_feed_goes_on(self) -> None:
        feed = self.do(self.store.feed(ACCOUNT, 0, ALL))
        assert [(event.job_id, event.sequence) for event in feed] == self.model.feed
        positions = [event.position for event in feed]
        assert positions == sorted(set(positions))

    def teardown(self) -> None:
        if not hasattr(self, "runner"):
            return
        try:
            self.touched = set(self.model.jobs)
            self.logs_have_no_gaps()
        finally:
            self.do(self.store.close())
            self.runner.close()
            self.place.close()
