"""Retention: what is kept until when."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.jobs.cancel import drop_artifacts

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.jobs.model import Job, StoredFile
    from tempa.jobs.ports import ArtifactStore, JobStore

_Lapsed = TypeVar("_Lapsed", "Job", "StoredFile")

_logger = logging.getLogger(__name__)

_BATCH = 100
_STUCK_MAX = 1000  # a round; more are no matter of single folders: the disk itself is sick


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
            except StoreUnavailable:
                _logger.warning("cleaning waits: the store is away")
            await pause(stop, self.every_seconds)

    async def clean(self) -> None:
        """One round: bytes are deleted before their row is marked.

        A crash in between leaves a row that the next round finds again, and links that answer 410;
        the other way round it would leave bytes that nobody looks for. So does a folder that
        cannot be deleted: it is logged, stays for the next round and holds up no other.
        """
        await _each(self.store.lapsed, self._remove)
        await _each(self.store.lapsed_files, self._forget)

    async def _remove(self, job: Job) -> None:
        await drop_artifacts(self.artifacts, job)
        await self.store.mark_removed(job.account, job.id)

    async def _forget(self, stored: StoredFile) -> None:
        await self.artifacts.delete(stored.key)
        await self.store.forget_file(stored.id)


async def _each(
    find: Callable[[int], Awaitable[Sequence[_Lapsed]]], drop: Callable[[_Lapsed], Awaitable[None]]
) -> None:
    """Drop all that is found. What stays is found again with the next batch, and passed over."""
    stuck: set[str] = set()
    while found := [one for one in await find(_BATCH + len(stuck)) if one.id not in stuck]:
        for one in found:
            try:
                await drop(one)
            except OSError as error:
                stuck.add(one.id)
                _logger.warning("cannot be deleted: %s", error.strerror or error, extra={"of": one.id})
        if len(stuck) >= _STUCK_MAX:
            return
