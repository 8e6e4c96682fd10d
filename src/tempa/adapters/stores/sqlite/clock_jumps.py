"""What is due by the wall clock, moved along when that is set back. Leases go by a clock that is not set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.core.work import DELIVERIES, INBOX, lane_topic

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow


class ClockJumpsPart(Access):
    """Retries, holds and queued jobs keep their delay. Deadlines and retention, being times of day, stay."""

    async def set_back(self, milliseconds: int) -> int:
        """The clock went back so far: so does all that is due later than now; how many jobs and deliveries.

        What was written since the jump is moved too, and comes early: call it soon, and once a jump. Holds
        up the writer for 0.8 s where 100,000 jobs and 20,000 deliveries wait (2 cores, measured).
        """
        return await self._write(_set_back, milliseconds)

    async def behind_milliseconds(self) -> int:
        """How far the clock is behind what is on record; 0: it is not."""
        return await self._read(_behind)


def _set_back(milliseconds: int) -> Flow[Done[int]]:
    moment = yield MOMENT
    jump = {"now": moment.now, "by": milliseconds}
    deliveries = yield ASK.set_back_deliveries(**jump)
    endpoints = yield ASK.set_back_endpoints(**jump)
    lookups = yield ASK.set_back_inbox(**jump)
    jobs = yield ASK.set_back_jobs(**jump)
    topics = {lane_topic(job["lane"]) for job in jobs}
    if deliveries or endpoints:
        topics.add(DELIVERIES)
    if lookups:
        topics.add(INBOX)
    return Done(deliveries + len(jobs), tuple(topics))


def _behind() -> Flow[int]:
    moment = yield MOMENT
    latest = yield ASK.latest_record()
    behind: int = latest - moment.now
    return max(0, behind)
