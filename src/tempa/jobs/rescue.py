"""Jobs whose worker stopped answering, and jobs whose deadline passed in the queue."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable, TempaError
from tempa.core.work import pause
from tempa.jobs.model import Canceled, Usage
from tempa.jobs.perform import after_failure, job_error, prefix

if TYPE_CHECKING:
    import asyncio
    import random

    from tempa.core.metrics import Meter
    from tempa.jobs.model import Claimed, Ending, Lease
    from tempa.jobs.ports import ArtifactStore, JobStore

_logger = logging.getLogger(__name__)

_BATCH = 100


@dataclass(kw_only=True)
class Rescuer:
    """Takes over expired leases. Not a job itself: killing it delays rescue, never loses it."""

    store: JobStore
    artifacts: ArtifactStore
    meter: Meter
    rng: random.Random
    max_crash_retries: int
    every_seconds: float = 1.0
    name: str = "rescuer"

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`, at once the first time."""
        while not stop.is_set():
            try:
                await self.rescue()
                await self.expire()
            except StoreUnavailable:
                _logger.warning("the store is away; rescue waits for it")
            await pause(stop, self.every_seconds)

    async def rescue(self) -> int:
        """Requeue or fail every job whose lease has run out. Returns how many."""
        count = 0
        while expired := await self.store.expired(_BATCH):
            for claimed in expired:
                crash_point("rescue.seen")
                taken = await self.store.take_over(claimed.lease, self._ending(claimed))
                crash_point("rescue.taken")
                count += taken
                if taken:
                    lost = {"job_id": claimed.job.id, "attempt": claimed.lease.epoch}
                    _logger.warning("job taken over: its lease had run out", extra=lost)
                    await self._drop(claimed.lease)
        self.meter.count("tempa_jobs_rescued_total", count)
        return count

    async def _drop(self, lease: Lease) -> None:
        """Delete what the attempt had kept: it can publish nothing from here on.

        A worker that is alive after all and keeps its files now is fenced off, and deletes them itself.
        """
        try:
            await self.artifacts.delete(prefix(lease))
        except OSError as error:
            extra = {"job_id": lease.job_id, "attempt": lease.epoch}
            _logger.warning("files of a lost attempt stay: %s", error.strerror or error, extra=extra)

    def _ending(self, claimed: Claimed) -> Ending:
        """No usage: what a lost worker did is unknown, and its loss is ours, not the account's."""
        if claimed.job.cancel_requested:
            return Canceled()
        return after_failure(
            TempaError("WORKER_LOST"), claimed.job, Usage(), self.max_crash_retries, self.rng
        )

    async def expire(self) -> int:
        """Fail every queued job whose deadline has passed. Returns how many."""
        error = job_error(TempaError("DEADLINE_EXCEEDED"))
        count = 0
        while overdue := await self.store.overdue(_BATCH):
            for job in overdue:
                crash_point("expire.seen")
                count += await self.store.fail_queued(job.id, error)
        return count
