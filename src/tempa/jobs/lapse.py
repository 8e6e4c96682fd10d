"""Jobs bound to a GPU instance whose rental is over, the grace too: they end with RENTAL_EXPIRED."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable, TempaError
from tempa.core.work import cancel_topic, pause
from tempa.jobs.model import Failed, Lease, Status, Tenure
from tempa.jobs.perform import job_error

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

    from tempa.core.metrics import Meter
    from tempa.core.work import Wake
    from tempa.jobs.model import Job, JobError, Tenant
    from tempa.jobs.ports import Allowance, JobStore

_logger = logging.getLogger(__name__)

_BATCH = 100


@dataclass(kw_only=True)
class Lapse:
    """Ends what nobody pays for any longer. Killing it delays that, never loses it.

    A job that runs is ended in its worker's place, under the fence of its attempt: of a result that is
    published at this moment and its end one is written. The worker then finds its lease lost and kills the
    kernel: at once when the ring is heard, else with its next beat.
    """

    store: JobStore
    allowance: Allowance
    wake: Wake
    meter: Meter
    every_seconds: float = 2.0
    name: str = "lapse"

    async def run(self, stop: asyncio.Event) -> None:
        """Look every `every_seconds`, at once the first time."""
        while not stop.is_set():
            try:
                await self.look()
            except StoreUnavailable:
                _logger.warning("the store is away; what is bound to rentals that are over goes on")
            await pause(stop, self.every_seconds)

    async def look(self) -> int:
        """Fail every job whose rental and grace are over. Returns how many."""
        count = 0
        async for tenant in self._tenants():
            if await self.allowance.tenure(tenant) is Tenure.OVER:
                count += await self._end_all(tenant)
        return count

    async def _tenants(self) -> AsyncIterator[Tenant]:
        """Each once, however many jobs it has."""
        tenant = await self.store.next_tenant(None)
        while tenant is not None:
            yield tenant
            tenant = await self.store.next_tenant(tenant)

    async def _end_all(self, tenant: Tenant) -> int:
        error = job_error(TempaError("RENTAL_EXPIRED", detail={"gpu_instance_id": tenant.gpu_instance_id}))
        count, ended = 0, 1
        while ended:  # those that have just changed hands are found by the next look
            jobs = await self.store.bound_jobs(tenant, _BATCH)
            ended = sum([await self._end(job, error) for job in jobs])
            count += ended
        return count

    async def _end(self, job: Job, error: JobError) -> bool:
        """False: it has ended otherwise, or another attempt has begun."""
        if job.status is Status.QUEUED:
            return await self.store.fail_queued(job.id, error)
        if not await self.store.settle(Lease(job.id, job.epoch), Failed(error=error)):
            return False
        self.wake.ring(cancel_topic(job.id))
        self.meter.count("tempa_jobs_ended_total", engine=job.request.engine, ending="fail")
        extra = {"job_id": job.id, "attempt": job.epoch, "code": error.code}
        _logger.warning("job stopped: the rental of its GPU instance is over", extra=extra)
        return True
