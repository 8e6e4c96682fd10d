"""The host's handle on a process of its own: starting it, hearing it, and noticing its death."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from tempa.engines.host.control_line import ControlLine, close_all
from tempa.engines.host.outcome import unavailable
from tempa.engines.host.output import Output
from tempa.engines.host.protocol import ProtocolError, Ready, Unable
from tempa.engines.host.seat import is_dead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.core.errors import TempaError
    from tempa.engines.host.launch import Launch
    from tempa.engines.host.protocol import Message

_log = logging.getLogger(__name__)


class ProcessHandle:
    """One process that loads an engine's `module` and then serves attempts, in its children or by itself.

    `ready` tells its address space in bytes, or why there is none; `gone` its death.

    Raises:
        OSError: no process could be started.
    """

    def __init__(
        self,
        module: str,
        launch: Launch,
        command: Sequence[str],
        load_seconds: float,
        *,
        python: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._module = module
        self._launch = launch
        self._loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[int | TempaError] = self._loop.create_future()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._retired = False  # it is to serve no more, and to end
        self._unable: Unable | None = None
        self._output = Output()
        self._line, theirs = ControlLine.pair()
        try:
            self._process = launch.start(
                list(command), theirs.fileno(), self._output, python=python, variables=variables or {}
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
        self._load_timer = self._loop.call_later(load_seconds, self._give_up_loading, load_seconds)

    @property
    def usable(self) -> bool:
        """Whether it may still be given attempts, now or when it is loaded."""
        return not self._retired and not self.gone.done() and not is_dead(self._pidfd)

    def shut_down(self) -> None:
        """End, in good order if it listens. `gone` follows, after `reap_seconds` at the latest."""
        self._retired = True
        if self.gone.done():
            return
        if self.ready.done():
            self._line.hang_up()
            self._loop.call_later(self._launch.reap_seconds, self.destroy)
        else:  # it does not listen while it loads
            self.destroy()

    def destroy(self) -> None:
        """SIGKILL to it, and to all that it started."""
        raise NotImplementedError

    def _take(self, message: Message, descriptors: Sequence[int]) -> bool:
        """Do what a message says that only this kind of process sends. False: it is none of these."""
        raise NotImplementedError

    def _be_ready(self) -> None:
        """It is loaded."""

    def _reap(self) -> int:
        """The exit code of the process, which is dead."""
        raise NotImplementedError

    def _see_off(self, exit_code: int) -> None:
        """It is gone, and was heard to its last word: tell those whose attempts it had."""
        raise NotImplementedError

    def _give_up_loading(self, seconds: float) -> None:
        self._unable = Unable(f"not loaded within {seconds} s")
        self.destroy()

    def _hear(self) -> None:
        while True:
            try:
                message, descriptors = self._line.receive()
                if message is None:  # it is ending; its pidfd will tell
                    self._loop.remove_reader(self._line.fileno())
                    return
                self._understand(message, descriptors)
            except BlockingIOError:
                return
            except (OSError, ProtocolError):
                _log.exception("an engine's process cannot be understood", extra=self._extra())
                self._loop.remove_reader(self._line.fileno())
                self.destroy()
                return

    def _understand(self, message: Message, descriptors: list[int]) -> None:
        match message:
            case Ready(size_bytes) if not self.ready.done():
                self._load_timer.cancel()
                self.ready.set_result(size_bytes)
                self._be_ready()
            case Unable():
                self._unable = message
            case _ if not self._take(message, descriptors):
                close_all(descriptors)
                raise ProtocolError("not a word of such a process")

    def _die(self) -> None:
        self._loop.remove_reader(self._pidfd)
        exit_code = self._reap()
        os.close(self._pidfd)
        self._hear()  # what it said before
        self._loop.remove_reader(self._line.fileno())
        self._line.close()
        self._load_timer.cancel()
        if not self.ready.done():
            self.ready.set_result(unavailable(self._module, self._unable, exit_code, self._output.tail()))
        elif not self._retired:
            _log.error("an engine's process died", extra={**self._extra(), "exit_code": exit_code})
        self._see_off(exit_code)
        self._output.close()
        self.gone.set_result(None)

    def _extra(self) -> dict[str, object]:
        return {"engine_module": self._module}
