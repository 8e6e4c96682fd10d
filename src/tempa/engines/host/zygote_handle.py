"""The host's handle on one zygote process: starting it, asking it, and noticing its death."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.engines.host.control_line import ControlLine, close_all
from tempa.engines.host.outcome import unavailable
from tempa.engines.host.output import Output
from tempa.engines.host.protocol import (
    Exited,
    Fork,
    Forked,
    Kill,
    ProtocolError,
    Ready,
    Refused,
    Unable,
)
from tempa.engines.host.seat import Lost, Seat, is_dead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.core.errors import TempaError
    from tempa.engines.host.launch import Launch
    from tempa.engines.host.protocol import Message

_log = logging.getLogger(__name__)

# Each starts its threads when it is imported, and a process with threads cannot be forked safely.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


class ZygoteHandle:
    """One zygote. `ready` tells its address space in bytes, or why there is none; `gone` its death.

    Raises:
        OSError: no process could be started.
    """

    def __init__(self, module: str, launch: Launch) -> None:
        self._module = module
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[int | TempaError] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._retired = False
        self._unable: Unable | None = None
        self._seats: dict[int, Seat] = {}
        self._spare: Seat | None = None
        self._output = Output()
        self._line, theirs = ControlLine.pair()
        try:
            self._process = launch.start(
                _command(module), theirs.fileno(), self._output, variables=_ONE_THREAD
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
        self._load_timer = self._loop.call_later(launch.load_seconds, self._give_up_loading)

    @property
    def usable(self) -> bool:
        """Whether it may still be asked to fork."""
        return not self._retired and not self.gone.done() and not is_dead(self._pidfd)

    def _give_up_loading(self) -> None:
        self._unable = Unable(f"not loaded within {self._launch.load_seconds} s")
        self.destroy()

    def seat(self) -> Seat:
        """A child, the caller's to close. It tells what becomes of it, also if this zygote is dead."""
        if self._spare is not None and self._spare.waits:
            seat, self._spare = self._spare, None
            return seat
        self._drop_spare()
        return self._fork()

    def _fork_ahead(self) -> None:
        """Have one child wait for the next task: a fork takes 4 ms with a loaded OCCT, its first steps 3.

        To be called when another was reaped. Earlier the fork would take a core from the one that
        computes, or from the one that leaves and the server that publishes.
        """
        if self._spare is None and self.usable:
            self._spare = self._fork()

    def _drop_spare(self) -> None:
        if self._spare is not None:
            self._spare.close()
            self._spare = None

    def _fork(self) -> Seat:
        seat = Seat(self.kill)
        if self.gone.done():
            seat.end(Lost(started=False))
            return seat
        self._seats[seat.number] = seat
        self._send(Fork(seat.number), seat.descriptors())
        crash_point("fork.asked")
        self._loop.call_later(self._launch.fork_seconds, self._expect_begun, seat.number)
        return seat

    def kill(self, number: int) -> None:
        """Have a child's group killed. If that is not done in time the zygote itself dies for it."""
        if number in self._seats:
            self._send(Kill(number))
            self._loop.call_later(self._launch.reap_seconds, self._expect_ended, number)

    def retire(self) -> None:
        """Fork no more, and end when the last child has."""
        self._retired = True
        self._drop_spare()
        if not self._seats:
            self.shut_down()

    def shut_down(self) -> None:
        """Kill the children and end. `gone` follows, after `reap_seconds` at the latest."""
        self._retired = True
        if self.gone.done():
            return
        self._drop_spare()
        if self.ready.done():
            self._line.hang_up()
            self._loop.call_later(self._launch.reap_seconds, self.destroy)
        else:  # it does not listen while it loads, and has no children
            self.destroy()

    def destroy(self) -> None:
        """SIGKILL. Its children die with it."""
        if not self.gone.done():
            self._process.kill()

    def _send(self, message: Fork | Kill, descriptors: Sequence[int] = ()) -> None:
        try:
            self._line.send(message, descriptors)
        except OSError:  # dead, or so stuck that hundreds of messages wait: what it has is lost
            _log.exception("a zygote does not take messages", extra={"engine_module": self._module})
            self.destroy()

    def _expect_begun(self, number: int) -> None:
        if number in self._seats and not self._seats[number].begun:
            _log.error("a zygote does not fork", extra={"engine_module": self._module})
            self.destroy()

    def _expect_ended(self, number: int) -> None:
        if number in self._seats:
            _log.error("a zygote does not kill", extra={"engine_module": self._module})
            self.destroy()

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
                _log.exception("a zygote cannot be understood", extra={"engine_module": self._module})
                self._loop.remove_reader(self._line.fileno())
                self.destroy()
                return

    def _take(self, message: Message, descriptors: list[int]) -> None:
        match message:
            case Ready(size_bytes) if not self.ready.done():
                crash_point("zygote.ready")
                self._load_timer.cancel()
                self.ready.set_result(size_bytes)
            case Unable():
                self._unable = message
            case Forked(number, pid) if number in self._seats and descriptors:
                self._seats[number].begin(pid, descriptors[0])
            case Exited(number) | Refused(number) if number in self._seats:
                self._seats.pop(number).end(message)
                if self._retired and not self._seats:
                    self.shut_down()
                elif isinstance(message, Exited):
                    self._fork_ahead()
            case _:
                close_all(descriptors)
                raise ProtocolError("not a zygote's word")

    def _die(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        exit_code = self._process.wait()  # dead already: it does not wait
        self._hear()  # what it said before
        self._loop.remove_reader(self._line.fileno())
        self._line.close()
        self._load_timer.cancel()
        if not self.ready.done():
            self.ready.set_result(unavailable(self._module, self._unable, exit_code, self._output.tail()))
        elif not self._retired:
            _log.error("a zygote died", extra={"engine_module": self._module, "exit_code": exit_code})
        self._drop_spare()
        for seat in self._seats.values():
            seat.orphan(self._launch.reap_seconds)
        self._seats.clear()
        self._output.close()
        self.gone.set_result(None)


def _command(module: str) -> list[str]:
    return ["-m", "tempa.engines.host.zygote", "--module", module]
