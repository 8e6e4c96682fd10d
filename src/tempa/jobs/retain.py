"""Retention: what is kept until when."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.jobs.cancel import drop_artifacts

if TYPE_CHECKING:
    import asyncio

    from tempa.jobs.ports import ArtifactStore, JobStore

_logger = logging.getLogger(__name__)

_BATCH = 100


@dataclass(kw_only=True)
class Janitor:
    """Deletes artifacts past `retained_until`, and uploads past `expires_at`.

    What a fenced-off attempt had kept lies under its own epoch, unreachable, and goes with its job.
    """

    store: JobStore
    artifacts: ArtifactStore
    every_seconds: float = 60.0
    name: str = "janitor"

    async def run(self, stop: asyncio.Event) -> None:
        """Clean every `every_seconds`, at once the first time."""
        while not stop.is_set():
            try:
                await self.clean()
            except (StoreUnavailable, OSError):
                _logger.warning("cleaning waits: the store or the disk is away", exc_info=True)
            await pause(stop, self.every_seconds)

    async def clean(self) -> None:
        """One round. Rows are marked before bytes are deleted: a link may die early, never dangle."""
        while lapsed := await self.store.lapsed(_BATCH):
            for job in lapsed:
                await self.store.mark_removed(job.account, job.id)
                await drop_artifacts(self.artifacts, job)
        while files := await self.store.lapsed_files(_BATCH):
            for stored in files:
                await self.store.forget_file(stored.id)
                await self.artifacts.delete(stored.key)
