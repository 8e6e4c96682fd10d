"""SIGTERM and SIGHUP as exceptions, for blocks that have something to clear away when they end."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import FrameType

_NUMBERS = (signal.SIGTERM, signal.SIGHUP)


class ExitSignals:
    """Within the block the first signal raises SystemExit(128 + number), as shells count.

    Further ones are not heard, so that clearing away comes to its end.

    It begins held: a signal is then kept until `release`, or for the end of the block. Start a child
    process so; an exception between its start and the name it gets would leave it behind.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._held = True
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # the only one that may ask for signals
            for number in _NUMBERS:
                if signal.getsignal(number) != signal.SIG_IGN:  # nohup asked for that
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None:
            self._leave()

    def release(self) -> None:
        """From here on a signal raises; so does one that came before."""
        self._held = False
        self._leave()

    def hold(self) -> None:
        """From here on a signal waits for the end of the block."""
        self._held = True

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self._number is None:
            self._number = number
            if not self._held:
                self._leave()

    def _leave(self) -> None:
        if self._number is not None:
            raise SystemExit(128 + self._number)
