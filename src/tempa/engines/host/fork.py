"""The life cycle *fork*: a fresh child for each attempt, forked from a zygote of its engine."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.host.attempt import Attempt
from tempa.engines.host.bounds import Bounds
from tempa.engines.host.outcome import Verdict
from tempa.engines.host.protocol import Done, Exited, Refused
from tempa.engines.host.seat import End, Lost
from tempa.engines.host.zygote_handle import ZygoteHandle
from tempa.jobs.ports import Broke, Made

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.engines.host.launch import Launch
    from tempa.jobs.ports import Order

# Children on their way out whose attempts have ended already, on top of those that run. One takes
# some 6 ms with a loaded OCCT; more of them at once mean that something keeps them.
_LEAVERS_MAX = os.cpu_count() or 1
_STARTS_MAX = 2  # a second zygote, when the first turns out to be dead or spoiled


class ForkCycle:
    """Starts a zygote when an engine is first needed, and a new one when the old is dead or spoiled."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._current: dict[str, ZygoteHandle] = {}
        self._alive: set[ZygoteHandle] = set()  # the retired too
        self._attempts: set[Attempt] = set()
        self._leavers: set[asyncio.Task[None]] = set()
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

    async def close(self) -> None:
        """End all zygotes; attempts that still run end with WORKER_LOST."""
        self._closed = True
        for attempt in self._attempts:
            attempt.kill(Verdict.CLOSED)
        zygotes = list(self._alive)
        for zygote in zygotes:
            zygote.shut_down()
        for zygote in zygotes:
            await asyncio.shield(zygote.gone)
        if self._leavers:
            await asyncio.wait(self._leavers)

    async def _loaded(self, module: str) -> tuple[ZygoteHandle, int]:
        """The engine's zygote, and its address space in bytes.

        Raises:
            TempaError: ENGINE_UNAVAILABLE; WORKER_LOST when the host is closed, or the machine killed
                the zygote, neither of which is the engine's fault.
        """
        if self._closed:
            raise stopped()
        try:
            zygote = self._zygote(module)
        except OSError as error:
            raise no_process(error) from error
        loaded = await asyncio.shield(zygote.ready)
        if self._closed:
            raise stopped()
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
        seat = zygote.seat()
        try:
            attempt = Attempt(order, bounds, progress, seat)
        except BaseException:
            seat.close()
            raise
        self._attempts.add(attempt)
        try:
            how = await self._end(attempt)
            match how:
                case Done() | Exited() | Lost(started=True):
                    return attempt.outcome()
                case Refused(spoiled=True):
                    zygote.retire()
            return how
        finally:
            self._let_go(attempt)

    async def _end(self, attempt: Attempt) -> Done | End:
        """Wait until the outcome stands; canceled, for the end: nothing is left running behind it."""
        try:
            how = await asyncio.shield(attempt.known)
            return how if len(self._leavers) < _LEAVERS_MAX else await asyncio.shield(attempt.ended)
        except asyncio.CancelledError:
            attempt.kill(Verdict.CANCELED)
            while not attempt.ended.done():
                try:
                    await asyncio.shield(attempt.ended)
                except asyncio.CancelledError:  # again: it is being killed, and that takes its bounded time
                    continue
            raise

    def _let_go(self, attempt: Attempt) -> None:
        """Close it, at once or when its child, which has said everything, is gone."""
        if attempt.ended.done():
            self._close(attempt)
            return
        leaver = asyncio.create_task(self._see_off(attempt))
        self._leavers.add(leaver)
        leaver.add_done_callback(self._leavers.discard)

    async def _see_off(self, attempt: Attempt) -> None:
        try:
            await attempt.see_off(self._launch.leave_seconds)
        finally:
            self._close(attempt)

    def _close(self, attempt: Attempt) -> None:
        self._attempts.discard(attempt)
        attempt.close()


def _never_started(why: Made | Broke | Refused | Lost) -> TempaError:
    match why:
        case Refused(spoiled=True, reason=reason):
            return TempaError("ENGINE_UNAVAILABLE", detail={"kernel": reason})
        case Refused(reason=reason):
            return TempaError("WORKER_LOST", detail={"kernel": reason})
    return TempaError("WORKER_LOST", detail={"reason": "the engine's parent process died"})


def stopped() -> TempaError:
    """The host ends: the attempt may be made elsewhere."""
    return TempaError("WORKER_LOST", detail={"reason": "the engine host stopped"})


def no_process(error: OSError) -> TempaError:
    """An engine whose process could not be started."""
    return TempaError(
        "ENGINE_UNAVAILABLE",
        "The engine's process could not be started.",
        hint="`tempa doctor` shows what is missing.",
        detail={"kernel": f"{type(error).__name__}: {error.strerror}"},
    )
