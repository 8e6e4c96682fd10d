"""What past jobs took, to tell others how long they may wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access
from tempa.jobs.model import PastJob

if TYPE_CHECKING:
    from tempa.adapters.stores.commands.flow import Flow


class EstimatesPart(Access):
    """`JobStore.past_jobs`."""

    async def past_jobs(self, engine: str, within_seconds: float, limit: int) -> list[PastJob]:
        """The latest jobs of an engine that ran and were completed."""
        return await self._read(_past_jobs, engine, within_seconds, limit)


def _past_jobs(engine: str, within_seconds: float, limit: int) -> Flow[list[PastJob]]:
    moment = yield MOMENT
    rows = yield ASK.past_jobs(engine=engine, since=moment.now - round(within_seconds * 1000), limit=limit)
    return [
        PastJob(
            total_seconds=(row["completed_at"] - row["created_at"]) / 1000,
            run_seconds=(row["completed_at"] - row["started_at"]) / 1000,
        )
        for row in rows
    ]
