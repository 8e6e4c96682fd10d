"""One attempt: run the engine, keep the lease alive, publish under the fence."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import CODES, StoreUnavailable, TempaError
from tempa.core.ids import new_id
from tempa.core.retry import RetryPolicy, full_jitter
from tempa.core.work import cancel_topic
from tempa.jobs.live import LivePreview
from tempa.jobs.model import (
    STEP_OF_ENDING,
    Beat,
    Canceled,
    Completed,
    Ending,
    Failed,
    JobError,
    Released,
    Result,
    Retried,
    Stage,
    Usage,
)
from tempa.jobs.ports import Broke, Housed, Made, Order

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

    from tempa.core.clock import Clock
    from tempa.core.metrics import Meter
    from tempa.core.work import Bell, Wake
    from tempa.jobs.model import Claimed, Job, Lease
    from tempa.jobs.ports import ArtifactStore, Engine, Host, JobStore
    from tempa.jobs.provide import Provider

_logger = logging.getLogger(__name__)

CRASH_CODES = frozenset({"KERNEL_CRASHED", "WORKER_LOST"})
_RETRY_POLICY = RetryPolicy(max_retries=3, base_seconds=1.0, cap_seconds=30.0)
_STAGE_LINGER_SECONDS = 0.2  # stages of a shorter job travel with its ending, at no flush of their own
_FRACTION_LINGER_SECONDS = 1.0  # nobody reads progress faster than this; each flush is an fsync
_STORE_RETRY_SECONDS = 0.5


def job_error(error: TempaError) -> JobError:
    """What the job's row keeps of an error."""
    return JobError(
        code=error.code,
        message=error.message,
        retryable=error.retryable,
        hint=error.hint,
        detail=error.detail,
    )


def after_failure(
    error: TempaError, job: Job, usage: Usage, max_crash_retries: int, rng: random.Random
) -> Failed | Retried:
    """Fail for good, or try again: the one place where this is decided.

    A crash budget apart from the retry budget (a poisonous job must not take worker after worker
    with it), both apart from hand-backs at shutdown, which cost nothing.
    """
    crash = error.code in CRASH_CODES
    spent = job.crash_count if crash else job.retry_count
    budget = max_crash_retries if crash else CODES[error.code].auto
    if not error.retryable or spent >= budget:
        return Failed(error=job_error(error), usage=usage)
    delay = 0.0 if crash else full_jitter(spent, _RETRY_POLICY, rng)
    return Retried(error=job_error(error), delay_seconds=delay, crash=crash, usage=usage)


@dataclass
class _Sight:
    """What has been seen of a running attempt and not yet been written."""

    clock: Clock
    preview: LivePreview
    news: asyncio.Event = field(default_factory=asyncio.Event)
    fraction: float | None = None
    _stage: str | None = None  # the last one, written or not: its next fraction is no new stage
    _stages: list[Stage] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def see(self, stage: str, fraction: float | None) -> None:
        linger = _FRACTION_LINGER_SECONDS
        if stage != self._stage:
            self._stage = stage
            self._stages.append(Stage(name=stage, at=self.clock.now()))
            linger = _STAGE_LINGER_SECONDS
        self.fraction = fraction
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(linger, self.news.set)

    def take(self) -> tuple[Stage, ...]:
        """The unwritten stages; they are the caller's to write now."""
        self.close()
        self.news.clear()
        stages, self._stages = tuple(self._stages), []
        return stages

    def put_back(self, stages: tuple[Stage, ...]) -> None:
        """They could not be written: the next who takes gets them, before what came since."""
        self._stages[:0] = stages

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@dataclass(kw_only=True)
class Performer:
    """Runs claimed jobs, one call of `perform` each."""

    store: JobStore
    artifacts: ArtifactStore
    host: Host
    provider: Provider
    wake: Wake
    clock: Clock
    engines: Mapping[str, Engine]
    meter: Meter
    rng: random.Random
    lease_seconds: float
    beat_seconds: float
    max_crash_retries: int

    async def perform(self, claimed: Claimed, draining: asyncio.Event) -> None:
        """Run one attempt to its ending. Returns when that is written, or when the lease is lost.

        When `draining` is set the kernel is killed and the job handed back.
        """
        sight = _Sight(self.clock, LivePreview(self.artifacts, claimed.job.id))
        run = asyncio.create_task(self._run(claimed, sight))
        watch = asyncio.create_task(self._watch(claimed, sight, draining))
        try:
            await asyncio.wait({run, watch}, return_when=asyncio.FIRST_COMPLETED)
            first, other = (run, watch) if run.done() else (watch, run)
            await _stop(other)
            ending = self._ending(first, claimed)
        finally:
            await _stop(run)
            await _stop(watch)
            sight.close()
            await sight.preview.end()
        if ending is not None:
            await self._settle(claimed, replace(ending, stages=sight.take()))
        else:
            lost = {"job_id": claimed.job.id, "attempt": claimed.lease.epoch}
            _logger.warning("the lease was lost: the kernel was stopped, nothing was written", extra=lost)
            await self._drop(claimed, fenced_off=True)

    def _ending(self, task: asyncio.Task[Ending | None], claimed: Claimed) -> Ending | None:
        error = task.exception()
        if error is None:
            return task.result()
        reference = new_id("log")
        _logger.error(
            "attempt failed for a fault of ours",
            exc_info=error,
            extra={"job_id": claimed.job.id, "reference": reference},
        )
        return self._after(TempaError("INTERNAL", detail={"reference": reference}), claimed)

    def _after(self, error: TempaError, claimed: Claimed, usage: Usage | None = None) -> Failed | Retried:
        return after_failure(error, claimed.job, usage or Usage(), self.max_crash_retries, self.rng)

    async def _run(self, claimed: Claimed, sight: _Sight) -> Ending | None:
        cached = await self._take_from_twin(claimed)
        return cached if cached is not None else await self._run_engine(claimed, sight)

    async def _take_from_twin(self, claimed: Claimed) -> Completed | None:
        """Publish a copy of what equal work has made, if there is any.

        No equal work runs at this moment: the claim saw to that. What cannot be looked up or
        copied costs a run of the kernel, never the job.
        """
        job = claimed.job
        if job.work_key is None:
            return None
        try:
            twin = await self.store.finished_twin(job)
            if twin is None or twin.result is None:
                return None
            copied = await self.artifacts.copy(prefix(claimed.lease), twin.result.artifacts)
        except (StoreUnavailable, OSError):
            _logger.warning("the result of equal work cannot be had", exc_info=True, extra={"job_id": job.id})
            return None
        if copied is None:
            return None
        return Completed(result=replace(twin.result, artifacts=copied), usage=Usage(), cached=True)

    async def _run_engine(self, claimed: Claimed, sight: _Sight) -> Ending:
        job = claimed.job
        engine = self.engines.get(job.request.engine)
        if engine is None:  # switched off while the job waited
            return self._after(TempaError("ENGINE_UNAVAILABLE"), claimed)
        try:
            folder = self.artifacts.scratch(prefix(claimed.lease))
        except OSError as error:
            return self._after(_not_stored(error), claimed)
        sight.preview.folder = folder
        order = Order(
            engine=engine.name,
            module=engine.module,
            life_cycle=engine.life_cycle,
            work={**job.request.work, **job.request.inputs},
            folder=folder,
            limits=engine.limits,
            python=engine.python if isinstance(engine, Housed) else None,
            options=engine.options if isinstance(engine, Housed) else {},
        )
        try:
            try:
                await self.provider.provide(job, engine, folder, sight.see)
            except TempaError as error:
                return self._after(error, claimed)
            outcome = await self.host.run(order, sight.see)
            self._measure(engine.name, outcome)
            usage = Usage(compute_time_ms=outcome.compute_time_ms, peak_rss_bytes=outcome.peak_rss_bytes)
            if isinstance(outcome, Broke):
                return self._after(outcome.error, claimed, usage)
            return await self._publish(claimed, order, outcome, usage)
        finally:
            await self.artifacts.discard(folder)

    def _measure(self, engine: str, outcome: Made | Broke) -> None:
        result = outcome.error.code if isinstance(outcome, Broke) else "completed"
        self.meter.count("tempa_engine_runs_total", engine=engine, outcome=result)
        self.meter.observe("tempa_engine_run_seconds", outcome.compute_time_ms / 1000, engine=engine)

    async def _publish(self, claimed: Claimed, order: Order, made: Made, usage: Usage) -> Ending:
        try:
            kept = await self.artifacts.keep(prefix(claimed.lease), order.folder, made.files)
        except OSError as error:
            return self._after(_not_stored(error), claimed, usage)
        return Completed(result=Result(artifacts=kept, measurements=made.measurements), usage=usage)

    async def _watch(self, claimed: Claimed, sight: _Sight, draining: asyncio.Event) -> Ending | None:
        """Beat until the attempt must end early: how it then ends, or None if the lease is lost."""
        good_until = self.clock.monotonic() + self.lease_seconds
        with self.wake.listen(cancel_topic(claimed.job.id)) as bell:
            while True:
                await self._pause(claimed, sight, bell, draining)
                if draining.is_set():
                    crash_point("release.decided")
                    return Released()
                if self._seconds_left(claimed) <= 0:
                    return Failed(error=job_error(TempaError("DEADLINE_EXCEEDED")))
                await sight.preview.show()
                beat = Beat(lease=claimed.lease, stages=sight.take(), fraction=sight.fraction)
                crash_point("beat.asked")
                try:
                    (answer,) = await self.store.beat([beat], self.lease_seconds)
                except StoreUnavailable:
                    sight.put_back(beat.stages)
                    if self.clock.monotonic() >= good_until:
                        return None  # someone else may hold the job by now: stop the kernel
                    continue
                crash_point("beat.answered")
                good_until = self.clock.monotonic() + self.lease_seconds
                if not answer.held:
                    return None
                if answer.cancel_requested:
                    return Canceled()

    async def _pause(self, claimed: Claimed, sight: _Sight, bell: Bell, draining: asyncio.Event) -> None:
        seconds = min(self.beat_seconds, max(0.0, self._seconds_left(claimed)))
        waits = [
            asyncio.ensure_future(wait) for wait in (sight.news.wait(), draining.wait(), bell.wait(seconds))
        ]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _seconds_left(self, claimed: Claimed) -> float:
        deadline = claimed.job.deadline_at
        return float("inf") if deadline is None else (deadline - self.clock.now()).total_seconds()

    async def _settle(self, claimed: Claimed, ending: Ending) -> None:
        """Write the ending. If the store stays away past the lease, the rescuer will end the job."""
        give_up = self.clock.monotonic() + self.lease_seconds
        written: bool | None = None
        crash_point("settle.asked")
        while written is None:
            try:
                written = await self.store.settle(claimed.lease, ending)
            except StoreUnavailable:
                if self.clock.monotonic() >= give_up:
                    raise
                await self.clock.sleep(_STORE_RETRY_SECONDS)
        crash_point("settle.committed")
        if written:
            self._tell(claimed, ending)
        else:
            _logger.warning("fenced off: another epoch holds this job", extra={"job_id": claimed.job.id})
        if not (written and isinstance(ending, Completed)):
            await self._drop(claimed, fenced_off=not written)

    async def _drop(self, claimed: Claimed, *, fenced_off: bool) -> None:
        """Delete what the attempt kept and did not publish. What stays goes with its job.

        Fenced off, it may have published all the same: a commit whose answer was lost is asked for again.
        """
        try:
            if not (fenced_off and await self._has_published(claimed)):
                await self.artifacts.delete(prefix(claimed.lease))
        except (StoreUnavailable, OSError):
            extra = {"job_id": claimed.job.id, "attempt": claimed.lease.epoch}
            _logger.warning("files of an attempt are left behind", exc_info=True, extra=extra)

    async def _has_published(self, claimed: Claimed) -> bool:
        job = await self.store.job_by_id(claimed.job.id)
        kept = job.result.artifacts if job is not None and job.result is not None else ()
        return any(one.key.startswith(f"{prefix(claimed.lease)}/") for one in kept)

    def _tell(self, claimed: Claimed, ending: Ending) -> None:
        engine, step = claimed.job.request.engine, str(STEP_OF_ENDING[type(ending)])
        code = ending.error.code if isinstance(ending, (Failed, Retried)) else None
        extra = {"job_id": claimed.job.id, "attempt": claimed.lease.epoch, "engine": engine, "code": code}
        _logger.info("attempt ended: %s", step, extra=extra)
        self.meter.count("tempa_jobs_ended_total", engine=engine, ending=step)
        if isinstance(ending, Completed) and ending.cached:
            self.meter.count("tempa_jobs_cached_total", engine=engine)


def prefix(lease: Lease) -> str:
    """Where an attempt's files lie: no other attempt's, so nothing of it is reached unless it publishes."""
    return f"{lease.job_id}.a{lease.epoch}"


def _not_stored(error: OSError) -> TempaError:
    return TempaError("ARTIFACT_STORE_FAILED", detail={"reason": error.strerror or "I/O error"})


async def _stop(task: asyncio.Task[Ending | None]) -> None:
    if not task.done():
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):  # its outcome is read elsewhere
        await task
