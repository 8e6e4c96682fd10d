"""The life cycle *resident*: one process an engine has its model loaded, and does one job at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.host.attempt import Attempt
from tempa.engines.host.bounds import Bounds
from tempa.engines.host.fork import no_process, stopped
from tempa.engines.host.outcome import Verdict
from tempa.engines.host.resident_handle import ResidentHandle, Tenant, tenant
from tempa.jobs.ports import Broke, Made

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.engines.host.launch import Launch
    from tempa.jobs.ports import Order

# After these the process may hold memory that no job of its owns any more, or a device context that is
# broken for good. Those of a model that only refused its input are not among them.
_SPOILING = frozenset({"CUDA_OUT_OF_MEMORY", "OUT_OF_MEMORY", "DEVICE_UNAVAILABLE", "INTERNAL"})


@dataclass(slots=True)
class _Home:
    """Where one engine's process lives. Who has `turn` may use it."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    handle: ResidentHandle | None = None
    attempt: Attempt | None = None


class ResidentCycle:
    """Starts an engine's process when it is first needed, and anew when it died, was killed or is spoiled.

    Attempts of one engine wait for one another, however many are asked for at once. A wait counts toward
    no time limit but the job's own deadline. Loading the model is told as the stage `loading`.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._homes: dict[Tenant, _Home] = {}
        self._closed = False

    async def run(self, order: Order, progress: Callable[[str, float | None], None]) -> Made | Broke:
        """Run one attempt; as `tempa.jobs.ports.Host`."""
        who = tenant(order.module, order.python, dict(order.options))
        home = self._homes.setdefault(who, _Home())
        if home.turn.locked():
            progress("waiting", None)
        async with home.turn:
            try:
                handle = await self._loaded(who, home, progress)
            except TempaError as error:
                return Broke(error, compute_time_ms=0, peak_rss_bytes=0)
            return await self._run(order, home, handle, progress)

    async def close(self) -> None:
        """End all processes; attempts that run or wait end with WORKER_LOST."""
        self._closed = True
        handles = [home.handle for home in self._homes.values() if home.handle is not None]
        for home in self._homes.values():
            if home.attempt is not None:
                home.attempt.kill(Verdict.CLOSED)
        for handle in handles:
            handle.shut_down()
        for handle in handles:
            await asyncio.shield(handle.gone)

    async def _loaded(
        self, who: Tenant, home: _Home, progress: Callable[[str, float | None], None]
    ) -> ResidentHandle:
        """The engine's process, its model loaded.

        Raises:
            TempaError: what the engine says of itself; WORKER_LOST when the host is closed.
        """
        if home.handle is not None and not home.handle.usable:
            await self._see_end(home.handle)
            home.handle = None
        if self._closed:
            raise stopped()
        if home.handle is None:
            home.handle = self._start(who)
        handle = home.handle
        if not handle.ready.done():
            progress("loading", None)
        loaded = await asyncio.shield(handle.ready)
        if self._closed:
            raise stopped()
        if isinstance(loaded, TempaError):
            raise loaded
        return handle

    def _start(self, who: Tenant) -> ResidentHandle:
        try:
            return ResidentHandle(who, self._launch)
        except OSError as error:
            raise no_process(error) from error

    async def _see_end(self, handle: ResidentHandle) -> None:
        """Wait until the process before is gone: the device has no room for two."""
        try:
            await asyncio.wait_for(asyncio.shield(handle.gone), self._launch.reap_seconds)
        except TimeoutError:
            reason = "the engine's process before does not end"
            raise TempaError("WORKER_LOST", detail={"reason": reason}) from None

    async def _run(
        self,
        order: Order,
        home: _Home,
        handle: ResidentHandle,
        progress: Callable[[str, float | None], None],
    ) -> Made | Broke:
        seat = handle.seat()
        try:
            attempt = home.attempt = Attempt(order, Bounds.watched(order.limits), progress, seat)
        except BaseException:
            handle.destroy()  # it waits for a task that will not come
            seat.close()
            raise
        try:
            await self._end(attempt)
            outcome = attempt.outcome()
        finally:
            home.attempt = None
            attempt.close()
        if isinstance(outcome, Broke) and outcome.error.code in _SPOILING:
            handle.destroy()
        return outcome

    async def _end(self, attempt: Attempt) -> None:
        """Wait until the attempt has ended; canceled, kill it: nothing is left running behind it."""
        try:
            await asyncio.shield(attempt.ended)
        except asyncio.CancelledError:
            attempt.kill(Verdict.CANCELED)
            while not attempt.ended.done():
                try:
                    await asyncio.shield(attempt.ended)
                except asyncio.CancelledError:  # again: it is being killed, and that takes its bounded time
                    continue
            raise
