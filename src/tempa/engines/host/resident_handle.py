"""The host's handle on one resident process: starting it, giving it attempts, and noticing its death."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tempa.engines.host.process_handle import ProcessHandle
from tempa.engines.host.protocol import Exited, Serve, Served
from tempa.engines.host.seat import Lost, Seat

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from tempa.engines.host.launch import Launch
    from tempa.engines.host.protocol import Message

_START = Path(__file__).with_name("resident_start.py")


@dataclass(frozen=True, slots=True)
class Tenant:
    """What a resident process is for. `options` are the operator's for the engine, as JSON."""

    module: str
    python: str | None
    options: str

    def command(self) -> list[str]:
        """What follows the interpreter."""
        return [str(_START), "--module", self.module, "--options", self.options]


def tenant(module: str, python: str | None, options: object) -> Tenant:
    """One and the same for equal options."""
    return Tenant(module, python, json.dumps(options, sort_keys=True, allow_nan=False))


class ResidentHandle(ProcessHandle):
    """One resident process: it does one attempt after the other itself.

    Raises:
        OSError: no process could be started.
    """

    def __init__(self, tenant: Tenant, launch: Launch) -> None:
        self._seat: Seat | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._died = Exited(0, 0, 0.0, 0)
        super().__init__(tenant.module, launch, tenant.command(), launch.model_seconds, python=tenant.python)

    def seat(self) -> Seat:
        """The place of the next attempt, the caller's to close. To be asked for one at a time, when ready."""
        assert self._seat is None, "a resident process does one attempt at a time"
        self._stop_idling()
        seat = Seat(self._kill)
        if self.gone.done():
            seat.end(Lost(started=False))
            return seat
        self._seat = seat
        try:
            self._line.send(Serve(seat.number), seat.descriptors())
        except OSError:  # dead; its pidfd will tell
            self.destroy()
        seat.begin(self._process.pid, os.dup(self._pidfd))
        return seat

    def _kill(self, number: int) -> None:
        assert self._seat is not None
        assert self._seat.number == number
        self.destroy()
        # A process that a driver keeps in the kernel cannot be reaped: the attempt must end all the same.
        self._loop.call_later(self._launch.reap_seconds, self._seat.end, Lost(started=True))

    def destroy(self) -> None:
        """SIGKILL to the process and all that it started."""
        self._retired = True
        if not self.gone.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _be_ready(self) -> None:
        self._idle()

    def _take(self, message: Message, descriptors: Sequence[int]) -> bool:
        del descriptors
        if not (isinstance(message, Served) and self._seat and self._seat.number == message.attempt):
            return False
        self._end_seat(Exited(message.attempt, 0, message.cpu_seconds, message.peak_rss_bytes))
        self._idle()
        return True

    def _end_seat(self, how: Exited) -> None:
        seat, self._seat = self._seat, None
        if seat is not None:
            seat.end(how)

    def _idle(self) -> None:
        if self._launch.idle_seconds is not None:
            self._idle_timer = self._loop.call_later(self._launch.idle_seconds, self.shut_down)

    def _stop_idling(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()

    def _reap(self) -> int:
        # While it is not reaped, its number and its group's belong to nobody else.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self._process.pid, 0)  # dead already: it does not wait
        self._process.returncode = exit_code = os.waitstatus_to_exitcode(status)
        number = self._seat.number if self._seat else 0
        # No peak: the system's begins with the server's own, of before the exec, and a crash would be told
        # as a lack of memory. What the attempt's watch has seen counts.
        self._died = Exited(number, exit_code, usage.ru_utime + usage.ru_stime, 0)
        return exit_code

    def _see_off(self, exit_code: int) -> None:
        del exit_code
        self._stop_idling()
        self._end_seat(self._died)
