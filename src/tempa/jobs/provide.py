"""An attempt's inputs: put where its engine finds them, before it starts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.jobs.inputs import FOLDER, key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tempa.core.limits import Limits
    from tempa.jobs.model import Job
    from tempa.jobs.ports import ArtifactStore, Engine, Fetch, Takes

_FETCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Copies a job's own inputs and fetches those that are named by URL."""

    artifacts: ArtifactStore
    fetch: Fetch
    limits: Limits

    async def provide(
        self, job: Job, engine: Engine, folder: Path, progress: Callable[[str, float | None], None]
    ) -> None:
        """Put every input of the job into a folder below `folder`.

        Raises `TempaError`: SOURCE_FETCH_FAILED, the code of an input that is too large,
        ARTIFACT_STORE_FAILED when the bytes cannot be had or not be written.
        """
        if not job.request.inputs:
            return
        target = folder / FOLDER
        try:
            await asyncio.to_thread(target.mkdir)
            for takes in engine.takes:
                reference = job.request.inputs.get(takes.name)
                if reference is not None and "url" in reference:
                    progress("fetching", None)
                    await self._fetch(takes, reference, target / takes.name)
                elif reference is not None:
                    await self._lend(job, takes, target / takes.name)
        except OSError as error:
            reason = error.strerror or "I/O error"
            raise TempaError("ARTIFACT_STORE_FAILED", detail={"reason": reason}) from error

    async def _lend(self, job: Job, takes: Takes, target: Path) -> None:
        if not await self.artifacts.lend(key(job.id, takes.name), target):
            message = f"The job's {takes.name} is gone from the store."
            hint = "Ask again, with the file."
            detail = {"input": takes.name}
            raise TempaError("ARTIFACT_STORE_FAILED", message, retryable=False, hint=hint, detail=detail)

    async def _fetch(self, takes: Takes, reference: dict[str, Any], target: Path) -> None:
        most = takes.size_bytes_max(self.limits)
        fetched = await self.fetch.fetch(
            reference["url"],
            target,
            size_bytes_max=most,
            timeout_seconds=_FETCH_SECONDS,
            media_types=takes.media_types,
        )
        if fetched is None:
            code = takes.too_large or "SOURCE_FETCH_FAILED"
            message = f"The file behind the URL has more than {most} bytes."
            raise TempaError(code, message, retryable=False, detail={"limit": most})
