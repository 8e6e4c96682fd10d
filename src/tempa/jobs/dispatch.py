"""Ready jobs to free slots: a worker's loop. The database is the queue; rings only make it quick."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.work import lane_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.metrics import Meter
    from tempa.core.work import Bell, Wake
    from tempa.jobs.model import Claimed
    from tempa.jobs.perform import Performer
    from tempa.jobs.ports import JobStore

_logger = logging.getLogger(__name__)

_POLL_SECONDS = 1.0  # the truth, should every ring be lost
_CLAIM_MAX = 128  # those run while the next are claimed: others wait for a claim, and so would these


@dataclass(kw_only=True)
class Worker:
    """Claims jobs of its lanes into its slots, and performs them."""

    store: JobStore
    performer: Performer
    wake: Wake
    meter: Meter
    lanes: Sequence[str]
    slots: int
    lease_seconds: float
    worker_id: str
    name: str = "worker"
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _kept: int = 0  # slots for what the store is about to hand over
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)  # a slot was filled or given back

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`; then every running job is handed back, no attempt burnt."""
        self._stop = stop
        with self.wake.listen(*(lane_topic(lane) for lane in self.lanes)) as bell, self.store.stand_by(self):
            while not stop.is_set():
                seconds = await self._fill(stop)
                if seconds > 0:
                    await self._wait(bell, stop, seconds)
        crash_point("drain.begun")
        while self._kept:  # what is on its way comes, and is handed back too
            self._changed.clear()
            await self._changed.wait()
        if self._running:
            await asyncio.wait(self._running)

    def reserve(self, lane: str) -> bool:
        """Keep a slot for a job of this lane that the store is about to admit. False: there is none."""
        if self._stop.is_set() or lane not in self.lanes or self._free <= 0:
            return False
        self._kept += 1
        return True

    def take(self, claimed: Sequence[Claimed]) -> None:
        """Start what the kept slot is for; nothing: it is free again."""
        self._kept -= 1
        for one in claimed:
            self._start(one, self._stop)
        self._changed.set()

    @property
    def _free(self) -> int:
        return self.slots - len(self._running) - self._kept

    async def _fill(self, stop: asyncio.Event) -> float:
        """Take what there are slots for; returns the seconds until there may be more, 0 for at once."""
        limit = min(self._free, _CLAIM_MAX)
        if limit <= 0:
            return _POLL_SECONDS
        try:
            # Asked before the claim, so that what comes due in between is claimed and not slept over; but
            # not waited for: pickup takes as long as the claim alone.
            next_seconds, claimed = await asyncio.gather(
                self.store.next_delayed(self.lanes),
                self.store.claim(self.worker_id, self.lanes, limit, self.lease_seconds),
            )
        except StoreUnavailable:
            _logger.warning("the store is away; jobs wait for it")
            return _POLL_SECONDS
        for one in claimed:
            self._start(one, stop)
        if claimed:
            return 0.0
        return _POLL_SECONDS if next_seconds is None else min(next_seconds, _POLL_SECONDS)

    def _start(self, claimed: Claimed, stop: asyncio.Event) -> None:
        crash_point("claim.committed")
        self._measure(claimed)
        task = asyncio.create_task(self.performer.perform(claimed, stop))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, claimed))

    def _measure(self, claimed: Claimed) -> None:
        job = claimed.job
        _logger.info("job claimed", extra={"job_id": job.id, "attempt": claimed.lease.epoch})
        if claimed.lease.epoch == 1 and job.started_at:
            waited = (job.started_at - job.created_at).total_seconds()
            self.meter.observe("tempa_jobs_wait_seconds", waited, engine=job.request.engine)

    def _ended(self, claimed: Claimed, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()):
            where = {"job_id": claimed.job.id, "attempt": claimed.lease.epoch}
            _logger.error("an ending could not be written; the rescuer will", extra=where, exc_info=error)

    async def _wait(self, bell: Bell, stop: asyncio.Event, seconds: float) -> None:
        """Until it is worth looking for jobs: a ring, a slot that is free again, or the time."""
        handed_over = True  # a job that was handed over has taken a slot; nothing to look for
        while handed_over and not stop.is_set():
            self._changed.clear()
            changed = asyncio.ensure_future(self._changed.wait())
            waits: list[asyncio.Future[Any]] = [changed, asyncio.ensure_future(stop.wait()), *self._running]
            if self._free > 0:
                waits.append(asyncio.ensure_future(bell.wait(seconds)))
            try:
                done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    if wait not in self._running:
                        wait.cancel()
            handed_over = done == {changed}
