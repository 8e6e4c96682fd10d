"""The thread that owns libcurl: CurlMulti, driven by `socket_action` on epoll.

Not by select(): beyond 1,023 descriptors in the process it returns at once and the thread spins.
Not by the event loop of the server: one slow step there would hold up every transfer's deadline.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING

import pycurl

from tempa.adapters.senders.curl.transfer import Transfer
from tempa.webhooks.ports import Answer

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from tempa.adapters.senders.curl.exchange import Exchange, Rules

_logger = logging.getLogger(__name__)

_CONNECTIONS_KEPT_MAX = 512
_HANDLES_KEPT_MAX = 128
_INTEREST = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
_READINESS = (
    (select.EPOLLIN, pycurl.CSELECT_IN),
    (select.EPOLLOUT, pycurl.CSELECT_OUT),
    (select.EPOLLERR | select.EPOLLHUP, pycurl.CSELECT_ERR),
)


class CurlThread:
    """Runs exchanges. `submit`, `withdraw`, `close` and `join` may be called from any thread.

    A fault of ours in one exchange ends that exchange, with `transport`. A fault of the loop itself
    ends the thread and all that is under way, with the same answer; it takes nothing any more.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._lock = threading.Lock()  # guards the next four, which other threads touch
        self._errands: deque[tuple[Callable[[Exchange], None], Exchange]] = deque()
        self._woken = self._closing = self._ended = False
        self._exchanges: dict[pycurl.Curl, Exchange] = {}  # under way, and their handles:
        self._transfers: dict[Exchange, Transfer] = {}
        self._idle: list[Transfer] = []
        self._bodies: OrderedDict[Exchange, float] = OrderedDict()  # deadlines; all wait equally long
        self._timer: float | None = None
        self._answers: list[tuple[asyncio.Future[Answer], Answer]] = []
        self._wake = os.eventfd(0)
        self._epoll = select.epoll()
        self._epoll.register(self._wake, select.EPOLLIN)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, _CONNECTIONS_KEPT_MAX)
        self._thread = threading.Thread(target=self._run, name="tempa-curl", daemon=True)
        self._thread.start()

    def submit(self, exchange: Exchange) -> bool:
        """Send it; its future gets the answer. False: the thread is closed, or has ended of a fault."""
        return self._ask(self._begin, exchange)

    def withdraw(self, exchange: Exchange) -> None:
        """Nobody waits for this one any more: drop it, connection and all."""
        self._ask(self._drop, exchange)

    def close(self) -> None:
        """Give up what is under way and stop; does not wait."""
        with self._lock:
            self._closing = True
            if not self._ended:
                os.eventfd_write(self._wake, 1)

    def join(self, timeout_seconds: float) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_seconds)

    def _ask(self, errand: Callable[[Exchange], None], exchange: Exchange) -> bool:
        with self._lock:
            if self._closing or self._ended:
                return False
            self._errands.append((errand, exchange))
            if not self._woken:  # one system call wakes it for all that is asked meanwhile
                self._woken = True
                os.eventfd_write(self._wake, 1)
        return True

    # All that follows runs in the thread.

    def _run(self) -> None:
        try:
            while not self._closing:
                self._poll()
                self._run_errands()
                self._end_bodies()
                self._collect()
                self._publish()
        except Exception:
            _logger.exception("the transport's loop broke; a request to come starts it anew")
        finally:
            self._shut()

    def _poll(self) -> None:
        for descriptor, events in self._epoll.poll(self._patience_seconds()):
            if descriptor == self._wake:
                os.eventfd_read(self._wake)
            else:
                self._multi.socket_action(descriptor, sum(to for has, to in _READINESS if events & has))
        if self._timer is not None and self._timer <= time.monotonic():
            self._timer = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _patience_seconds(self) -> float | None:
        due = [self._timer] if self._timer is not None else []
        if self._bodies:
            due.append(next(iter(self._bodies.values())))
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _run_errands(self) -> None:
        with self._lock:
            self._woken = False
        while self._errands:
            errand, exchange = self._errands[0]
            self._apart(exchange, errand, exchange)
            self._errands.popleft()  # only now: what a fault leaves there is told so by _shut

    def _apart(self, exchange: Exchange, step: Callable[..., None], *arguments: object) -> None:
        """A step of one exchange. If it breaks (no memory for a handle, say), the others go on."""
        try:
            step(*arguments)
        except Exception:
            _logger.exception("an exchange broke of a fault of our own")
            self._answers.append((exchange.future, Answer(None, "transport")))
            self._scrap(exchange)

    def _scrap(self, exchange: Exchange) -> None:
        """Forget it with its handle, which is in an unknown state."""
        self._bodies.pop(exchange, None)
        transfer = self._transfers.pop(exchange, None)
        if transfer is None:
            return
        self._exchanges.pop(transfer.curl, None)
        with contextlib.suppress(pycurl.error):  # it failed before it was added
            self._multi.remove_handle(transfer.curl)
        transfer.close()

    def _begin(self, exchange: Exchange) -> None:
        transfer = self._idle.pop() if self._idle else Transfer(self._rules, self._head_arrived)
        self._transfers[exchange] = transfer
        self._exchanges[transfer.curl] = exchange
        transfer.load(exchange)
        self._multi.add_handle(transfer.curl)

    def _head_arrived(self, exchange: Exchange) -> None:
        if exchange.sink is None:  # else the body is what is wanted, and the deadline bounds it
            self._bodies[exchange] = time.monotonic() + self._rules.body_seconds

    def _end_bodies(self) -> None:
        now = time.monotonic()
        while self._bodies and next(iter(self._bodies.values())) <= now:
            exchange = next(iter(self._bodies))
            self._apart(exchange, self._finish, exchange, pycurl.E_OK)

    def _collect(self) -> None:
        queued = 1
        while queued:
            queued, done, failed = self._multi.info_read()
            ended = [(curl, pycurl.E_OK) for curl in done] + [(curl, code) for curl, code, _ in failed]
            for curl, code in ended:
                exchange = self._exchanges[curl]
                self._apart(exchange, self._finish, exchange, code)

    def _finish(self, exchange: Exchange, code: int) -> None:
        transfer = self._transfers[exchange]
        again = transfer.died_unheard(code)
        if not again:
            self._answers.append((exchange.future, transfer.answer(code)))
        self._drop(exchange)
        if again:
            exchange.fresh = True
            self._begin(exchange)

    def _drop(self, exchange: Exchange) -> None:
        transfer = self._transfers.pop(exchange, None)
        if transfer is None:  # it has its answer already
            return
        self._bodies.pop(exchange, None)
        del self._exchanges[transfer.curl]
        try:
            self._multi.remove_handle(transfer.curl)
            transfer.unload()
        except BaseException:
            transfer.close()  # nobody else holds it by now
            raise
        if len(self._idle) < _HANDLES_KEPT_MAX:
            self._idle.append(transfer)
        else:
            transfer.close()

    def _publish(self) -> None:
        """One call into an event loop for all that ended in this turn."""
        batches = defaultdict(list)
        for future, answer in self._answers:
            batches[future.get_loop()].append((future, answer))
        for loop, batch in batches.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, batch)
        self._answers.clear()  # only now: what a fault leaves there is told by _shut

    def _watch(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            with contextlib.suppress(OSError):  # closed before it was taken back: epoll has dropped it
                self._epoll.unregister(descriptor)
            return
        try:
            self._epoll.register(descriptor, _INTEREST[what])
        except FileExistsError:
            self._epoll.modify(descriptor, _INTEREST[what])

    def _set_timer(self, timeout_ms: int) -> None:
        self._timer = None if timeout_ms < 0 else time.monotonic() + timeout_ms / 1000

    def _shut(self) -> None:
        with self._lock:
            self._ended = True
            os.close(self._wake)
        self._publish()
        unanswered = {*self._transfers, *(exchange for _, exchange in self._errands)}
        for exchange in unanswered:
            with contextlib.suppress(RuntimeError):
                exchange.future.get_loop().call_soon_threadsafe(_abandon, exchange.future, self._closing)
        for transfer in self._transfers.values():
            with contextlib.suppress(pycurl.error):  # one that failed before it was added
                self._multi.remove_handle(transfer.curl)
        for transfer in (*self._transfers.values(), *self._idle):
            transfer.close()
        self._multi.close()
        self._epoll.close()


def _settle(batch: Iterable[tuple[asyncio.Future[Answer], Answer]]) -> None:
    for future, answer in batch:
        if not future.done():  # else its task was canceled meanwhile
            future.set_result(answer)


def _abandon(future: asyncio.Future[Answer], closing: bool) -> None:  # noqa: FBT001 - called by a loop
    if future.done():
        return
    if closing:
        future.set_exception(RuntimeError("the sender was closed before the answer came"))
    else:
        future.set_result(Answer(None, "transport"))
