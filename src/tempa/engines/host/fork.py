"""The life cycle *fork*: a fresh child for each attempt, forked from a zygote of its engine."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.host.attempt import Attempt, Lost
from tempa.engines.host.bounds import Bounds
from tempa.engines.host.outcome import Verdict
from tempa.engines.host.protocol import Exited, Refused
from tempa.engines.host.zygote_handle import Launch, ZygoteHandle, ZygoteHealth
from tempa.jobs.ports import Broke, Made

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.jobs.ports import Order

_STARTS_MAX = 2  # a second zygote, when the first turns out to be dead or spoiled


class ForkCycle:
    """Starts a zygote when an engine is first needed, and a new one when the old is dead or spoiled."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._current: dict[str, ZygoteHandle] = {}
        self._alive: set[ZygoteHandle] = set()  # the retired too
        self._closed = False

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        """Run one attempt; as `tempa.jobs.ports.Host`."""
        start: Made | Broke | Refused | Lost = Lost(started=False)
        try:
            for _ in range(_STARTS_MAX):
                start = await self._try(order, progress)
                if isinstance(start, (Made, Broke)):
                    return start
        except TempaError as error:
            return Broke(error, compute_time_ms=0, peak_rss_bytes=0)
        return Broke(_never_started(start), compute_time_ms=0, peak_rss_bytes=0)

    async def warm(self, module: str) -> None:
        """Have the engine's zygote loaded.

        Raises:
            TempaError: as `_loaded`.
        """
        await self._loaded(module)

    def health(self) -> tuple[ZygoteHealth, ...]:
        """The zygotes that live."""
        return tuple(zygote.health() for zygote in self._alive)

    async def close(self) -> None:
        """End all zygotes; attempts that still run end with WORKER_LOST."""
        self._closed = True
        zygotes = list(self._alive)
        for zygote in zygotes:
            zygote.shut_down()
        for zygote in zygotes:
            await asyncio.shield(zygote.gone)

    async def _loaded(self, module: str) -> tuple[ZygoteHandle, int]:
        """The engine's zygote, and its address space in bytes.

        Raises:
            TempaError: ENGINE_UNAVAILABLE; WORKER_LOST when the host is closed, or the machine killed
                the zygote, neither of which is the engine's fault.
        """
        if self._closed:
            raise _stopped()
        try:
            zygote = self._zygote(module)
        except OSError as error:
            raise _no_process(error) from error
        loaded = await asyncio.shield(zygote.ready)
        if self._closed:
            raise _stopped()
        if isinstance(loaded, TempaError):
            raise loaded
        return zygote, loaded

    def _zygote(self, module: str) -> ZygoteHandle:
        zygote = self._current.get(module)
        if zygote is None or not zygote.usable:
            zygote = self._current[module] = ZygoteHandle(module, self._launch)
            self._alive.add(zygote)
            zygote.gone.add_done_callback(lambda _: self._alive.discard(zygote))
        return zygote

    async def _try(
        self, order: Order, progress: Callable[[str, float | None], None]
    ) -> Made | Broke | Refused | Lost:
        """One start. `Refused` and `Lost` mean that the work has not begun and may be started again."""
        zygote, size_bytes = await self._loaded(order.module)
        bounds = Bounds.of(order.limits, size_bytes, os.cpu_count() or 1)
        attempt = Attempt(order, bounds, progress, zygote.kill)
        try:
            zygote.fork(attempt)
            how = await _end(attempt)
            match how:
                case Exited() | Lost(started=True):
                    return attempt.outcome()
                case Refused(spoiled=True):
                    zygote.retire()
            return how
        finally:
            attempt.close()


async def _end(attempt: Attempt) -> Exited | Refused | Lost:
    """Wait for the end of an attempt. Canceled, it still waits: nothing is left running behind it."""
    try:
        return await asyncio.shield(attempt.ended)
    except asyncio.CancelledError:
        attempt.kill(Verdict.CANCELED)
        while not attempt.ended.done():
            try:
                await asyncio.shield(attempt.ended)
            except asyncio.CancelledError:  # again: it is being killed, and that takes its bounded time
                continue
        raise


def _never_started(why: Made | Broke | Refused | Lost) -> TempaError:
    match why:
        case Refused(spoiled=True, reason=reason):
            return TempaError("ENGINE_UNAVAILABLE", detail={"kernel": reason})
        case Refused(reason=reason):
            return TempaError("WORKER_LOST", detail={"kernel": reason})
    return TempaError("WORKER_LOST", detail={"reason": "the engine's parent process died"})


def _stopped() -> TempaError:
    return TempaError("WORKER_LOST", detail={"reason": "the engine host stopped"})


def _no_process(error: OSError) -> TempaError:
    return TempaError(
        "ENGINE_UNAVAILABLE",
        "The engine's process could not be started.",
        hint="`tempa doctor` shows what is missing.",
        detail={"kernel": f"{type(error).__name__}: {error.strerror}"},
    )
