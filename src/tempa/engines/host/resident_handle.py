"""The host's handle on one resident process: starting it, giving it attempts, and noticing its death."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tempa.engines.host.control_line import ControlLine, close_all
from tempa.engines.host.outcome import unavailable
from tempa.engines.host.output import Output
from tempa.engines.host.protocol import Exited, ProtocolError, Ready, Serve, Served, Unable
from tempa.engines.host.seat import Lost, Seat, is_dead

if TYPE_CHECKING:
    from tempa.core.errors import TempaError
    from tempa.engines.host.launch import Launch
    from tempa.engines.host.protocol import Message

_log = logging.getLogger(__name__)

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


class ResidentHandle:
    """One process. `ready` tells its address space in bytes, or why there is none; `gone` its death.

    Raises:
        OSError: no process could be started.
    """

    def __init__(self, tenant: Tenant, launch: Launch) -> None:
        self._tenant = tenant
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[int | TempaError] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._ends = False
        self._unable: Unable | None = None
        self._seat: Seat | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._output = Output()
        self._line, theirs = ControlLine.pair()
        try:
            self._process = launch.start(
                tenant.command(), theirs.fileno(), self._output, python=tenant.python
            )
        except OSError:
            self._line.close()
            self._output.close()
            raise
        finally:
            theirs.close()
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._die)
        self._loop.add_reader(self._line.fileno(), self._hear)
        self._load_timer = self._loop.call_later(launch.model_seconds, self._give_up_loading)

    @property
    def usable(self) -> bool:
        """Whether it may be given an attempt, now or when it is loaded."""
        return not self._ends and not self.gone.done() and not is_dead(self._pidfd)

    def _give_up_loading(self) -> None:
        self._unable = Unable(f"not loaded within {self._launch.model_seconds} s")
        self.destroy()

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

    def shut_down(self) -> None:
        """End, when the attempt that runs has ended. `gone` follows, after `reap_seconds` at the latest."""
        self._ends = True
        if self.gone.done():
            return
        if not self.ready.done():  # it does not listen while it loads
            self.destroy()
            return
        self._line.hang_up()
        self._loop.call_later(self._launch.reap_seconds, self.destroy)

    def destroy(self) -> None:
        """SIGKILL to the process and all that it started."""
        self._ends = True
        if not self.gone.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _hear(self) -> None:
        while True:
            try:
                message, descriptors = self._line.receive()
                if message is None:  # it is ending; its pidfd will tell
                    self._loop.remove_reader(self._line.fileno())
                    return
                self._take(message, descriptors)
            except BlockingIOError:
                return
            except (OSError, ProtocolError):
                extra = {"engine_module": self._tenant.module}
                _log.exception("a resident process cannot be understood", extra=extra)
                self._loop.remove_reader(self._line.fileno())
                self.destroy()
                return

    def _take(self, message: Message, descriptors: list[int]) -> None:
        match message:
            case Ready(size_bytes) if not self.ready.done():
                self._load_timer.cancel()
                self.ready.set_result(size_bytes)
                self._idle()
            case Unable():
                self._unable = message
            case Served() if self._seat is not None and self._seat.number == message.attempt:
                self._end_seat(Exited(message.attempt, 0, message.cpu_seconds, message.peak_rss_bytes))
                self._idle()
            case _:
                close_all(descriptors)
                raise ProtocolError("not a resident process's word")

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

    def _die(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self._ends = True
        # While it is not reaped, its number and its group's belong to nobody else.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._hear()  # what it said before
        self._loop.remove_reader(self._line.fileno())
        how = self._reap()
        os.close(self._pidfd)
        self._line.close()
        self._load_timer.cancel()
        self._stop_idling()
        if not self.ready.done():
            tail = self._output.tail()
            self.ready.set_result(unavailable(self._tenant.module, self._unable, how.exit_code, tail))
        self._end_seat(how)
        self._output.close()
        self.gone.set_result(None)

    def _reap(self) -> Exited:
        _, status, usage = os.wait4(self._process.pid, 0)  # dead already: it does not wait
        self._process.returncode = exit_code = os.waitstatus_to_exitcode(status)
        number = self._seat.number if self._seat else 0
        # No peak: the system's begins with the server's own, of before the exec, and a crash would be told
        # as a lack of memory. What the attempt's watch has seen counts.
        return Exited(number, exit_code, usage.ru_utime + usage.ru_stime, 0)
