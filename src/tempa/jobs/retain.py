"""Retention: what is kept until when."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.work import pause
from tempa.jobs.cancel import drop_artifacts
from tempa.jobs.inputs import is_prefix

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Sequence

    from tempa.jobs.model import Job, StoredFile
    from tempa.jobs.ports import ArtifactStore, JobStore, Place

_Lapsed = TypeVar("_Lapsed", "Job", "StoredFile")

_logger = logging.getLogger(__name__)

_BATCH = 100
_ORPHAN_AGE_SECONDS = 3600.0  # an upload's row is written moments after its bytes; this is far beyond
_LOOKS_MAX = 500  # a round: some ms of disk, and all of 100,000 results are looked at within 4 hours
_STUCK_MAX = 1000  # a round; more are no matter of single folders: the disk itself is sick
_SLICE = 25  # jobs a transaction: 4 to 8 ms of SQLite's one writer (2 cores, measured)
_SLICES_MAX = 500  # a round: files are looked after again meanwhile
_RECORDS = 1000  # of what accounts have used, a transaction: a few milliseconds
_TOMBSTONES_KEPT_SECONDS = 365 * 86_400.0
_DAY_SECONDS = 86_400.0


@dataclass(kw_only=True)
class Janitor:
    """Deletes artifacts past `retained_until`, uploads past `expires_at`, bytes that are nobody's, old rows.

    What an attempt kept and did not publish is deleted when it ends or is taken over. What a crash left of
    that lies under its own epoch, unreachable, and goes with its job.
    """

    store: JobStore
    artifacts: ArtifactStore
    rows_kept_days: float = 30.0
    every_seconds: float = 60.0
    rest_seconds: float = 0.02  # between two slices: whoever else writes waits for one of them at most
    name: str = "janitor"
    _looked_at: str = field(default="", init=False)
    _pruned_to: Place | None = field(default=None, init=False)

    async def run(self, stop: asyncio.Event) -> None:
        """Clean every `every_seconds`, at once the first time."""
        while not stop.is_set():
            more = False
            try:
                await self.clean()
                await self.sweep()
                more = await self.prune(stop)
            except StoreUnavailable:
                _logger.warning("cleaning waits: the store is away")
            await pause(stop, 0.0 if more else self.every_seconds)

    async def clean(self) -> None:
        """One round: bytes are deleted before their row is marked.

        A crash in between leaves a row that the next round finds again, and links that answer 410;
        the other way round it would leave bytes that nobody looks for. So does a folder that
        cannot be deleted: it is logged, stays for the next round and holds up no other.
        """
        await _each(self.store.lapsed, self._remove)
        await _each(self.store.lapsed_files, self._forget)

    async def sweep(self) -> None:
        """Look at some of what is stored, and delete what the store knows no owner of.

        That is what a crash left between an upload's bytes and its row, and what an attempt that was
        fenced off kept after its job was removed. A job that is not removed keeps all its attempts:
        one of them may still be writing. Of a job that is not known here only inputs go: it was never
        admitted, while results may be another store's.
        """
        try:
            stored = await self.artifacts.aged(_ORPHAN_AGE_SECONDS, self._looked_at, _LOOKS_MAX)
        except OSError as error:
            _logger.warning("what is stored cannot be listed: %s", error.strerror or error)
            return
        orphans = await self.store.orphans(sorted({_owner(prefix) for prefix in stored}))
        given = sorted({_owner(prefix) for prefix in stored if is_prefix(prefix)})
        strangers = await self.store.unknown_jobs(given) if given else ()
        self._looked_at = stored[-1] if len(stored) == _LOOKS_MAX else ""  # at the end: from the start
        for prefix in stored:
            if _owner(prefix) in orphans or (is_prefix(prefix) and _owner(prefix) in strangers):
                await self._discard(prefix)

    async def prune(self, stop: asyncio.Event) -> bool:
        """Delete the rows of removed jobs `rows_kept_days` past their retention. True: there are more.

        In slices with a rest between them, and so many a round: nobody else waits long. What may not go
        yet is passed over, and looked at again in the next pass.
        """
        jobs = 0
        for _ in range(_SLICES_MAX):
            pruned = await self.store.prune(self.rows_kept_days * _DAY_SECONDS, self._pruned_to, _SLICE)
            self._pruned_to = pruned.further
            jobs += pruned.jobs
            if pruned.further is None or stop.is_set():
                break
            await pause(stop, self.rest_seconds)
        if jobs:
            _logger.info("%d jobs were pruned", jobs)
        await self._forget_gone(stop)
        await self._forget_days(stop)
        return self._pruned_to is not None

    async def _forget_days(self, stop: asyncio.Event) -> None:
        """What accounts used before yesterday."""
        while await self.store.forget_days(_RECORDS) == _RECORDS and not stop.is_set():
            await pause(stop, self.rest_seconds)

    async def _forget_gone(self, stop: asyncio.Event) -> None:
        while await self.store.forget_gone(_TOMBSTONES_KEPT_SECONDS, _SLICE) == _SLICE and not stop.is_set():
            await pause(stop, self.rest_seconds)

    async def _discard(self, prefix: str) -> None:
        try:
            await self.artifacts.delete(prefix)
            crash_point("sweep.deleted")
        except OSError as error:
            _logger.warning("cannot be deleted: %s", error.strerror or error, extra={"of": prefix})
        else:
            _logger.info("deleted: it had no owner", extra={"of": prefix})

    async def _remove(self, job: Job) -> None:
        await drop_artifacts(self.artifacts, job)
        crash_point("clean.job_deleted")
        await self.store.mark_removed(job.account, job.id)

    async def _forget(self, stored: StoredFile) -> None:
        await self.artifacts.delete(stored.key)
        crash_point("clean.file_deleted")
        await self.store.forget_file(stored.id)


def _owner(prefix: str) -> str:
    """The job or the upload that a prefix belongs to."""
    return prefix.partition(".")[0]


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
