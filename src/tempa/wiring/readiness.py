"""What `/readyz` tells: would a request be served now?"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tempa.core.limits import KIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.jobs.ports import ArtifactStore
    from tempa.wiring.parts import Parts

# A write and a flush, some 10 ms of a disk: whoever asks in between is told the same again.
FRESH_SECONDS = 5.0
_PATIENCE_SECONDS = 5.0  # a disk that hangs must not hang its alarm
_ROOM_BYTES = 64 * KIB  # free bytes are no promise (quotas, reserves, file systems gone read-only): we write


class Readiness:
    """Each part of the server: `ok`, or the reason why it is not."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._probe: asyncio.Task[str] | None = None
        self._fresh_until = 0.0

    async def __call__(self) -> Mapping[str, str]:
        """Look at all parts; at the store alone when that is away."""
        try:
            await self._parts.jobs.job_by_id("")
        except Exception as error:  # noqa: BLE001 - whatever ails the store, the answer is "not ready"
            return {"store": type(error).__name__}
        engines = "ok" if self._parts.engines else "none can be loaded"
        return {"store": "ok", "engines": engines, "artifacts": await self._artifacts()}

    async def _artifacts(self) -> str:
        """Whether results can be written: one probe at a time, and one for all who ask."""
        now = self._parts.clock.monotonic()
        if self._probe is None or (self._probe.done() and now >= self._fresh_until):
            self._probe = asyncio.create_task(_probe(self._parts.artifacts))
            self._fresh_until = now + FRESH_SECONDS
        await asyncio.wait([self._probe], timeout=_PATIENCE_SECONDS)
        return self._probe.result() if self._probe.done() else "the disk does not answer"


async def _probe(artifacts: ArtifactStore) -> str:
    try:
        folder = await asyncio.to_thread(artifacts.scratch, "readiness")
        try:
            await asyncio.to_thread(_write, folder / "room")
        finally:
            await artifacts.discard(folder)
    except OSError as error:
        return f"cannot be written: {error.strerror or type(error).__name__}"
    return "ok"


def _write(path: Path) -> None:
    with path.open("wb") as file:
        file.write(os.urandom(_ROOM_BYTES))  # not zeros: some file systems keep those in no room at all
        file.flush()
        os.fsync(file.fileno())
