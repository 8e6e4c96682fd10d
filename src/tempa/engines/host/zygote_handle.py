"""The host's handle on one zygote process: starting it, asking it, and noticing its death."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.engines.host.process_handle import ProcessHandle
from tempa.engines.host.protocol import Exited, Fork, Forked, Kill, Refused
from tempa.engines.host.seat import Lost, Seat

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class ZygoteHandle(ProcessHandle):
    """One zygote: each attempt is a child of its own.

    Raises:
        OSError: no process could be started.
    """

    def __init__(self, module: str, launch: Launch) -> None:
        self._seats: dict[int, Seat] = {}
        self._spare: Seat | None = None
        super().__init__(module, launch, _command(module), launch.load_seconds, variables=_ONE_THREAD)

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
        self._drop_spare()
        super().shut_down()

    def destroy(self) -> None:
        """SIGKILL. Its children die with it."""
        if not self.gone.done():
            self._process.kill()

    def _send(self, message: Fork | Kill, descriptors: Sequence[int] = ()) -> None:
        try:
            self._line.send(message, descriptors)
        except OSError:  # dead, or so stuck that hundreds of messages wait: what it has is lost
            _log.exception("a zygote does not take messages", extra=self._extra())
            self.destroy()

    def _expect_begun(self, number: int) -> None:
        if number in self._seats and not self._seats[number].begun:
            _log.error("a zygote does not fork", extra=self._extra())
            self.destroy()

    def _expect_ended(self, number: int) -> None:
        if number in self._seats:
            _log.error("a zygote does not kill", extra=self._extra())
            self.destroy()

    def _be_ready(self) -> None:
        crash_point("zygote.ready")

    def _take(self, message: Message, descriptors: Sequence[int]) -> bool:
        match message:
            case Forked(number, pid) if number in self._seats and descriptors:
                self._seats[number].begin(pid, descriptors[0])
            case Exited(number) | Refused(number) if number in self._seats:
                self._seats.pop(number).end(message)
                if self._retired and not self._seats:
                    self.shut_down()
                elif isinstance(message, Exited):
                    self._fork_ahead()
            case _:
                return False
        return True

    def _reap(self) -> int:
        return self._process.wait()  # dead already: it does not wait

    def _see_off(self, exit_code: int) -> None:
        del exit_code
        self._drop_spare()
        for seat in self._seats.values():
            seat.orphan(self._launch.reap_seconds)
        self._seats.clear()


def _command(module: str) -> list[str]:
    return ["-m", "tempa.engines.host.zygote", "--module", module]
