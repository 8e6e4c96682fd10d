"""A doorbell between processes: PostgreSQL's NOTIFY, on one connection a process.

Never inside a transaction that does work: commits with a NOTIFY in them pass one at a time. What is rung
while a NOTIFY is on its way travels with the next one, so a flood costs a few messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg

from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tempa.core.clock import Clock
    from tempa.core.work import Bell

_logger = logging.getLogger(__name__)

CHANNEL = "tempa"
_NOTIFY = Path(__file__).with_name("notify.sql").read_text("utf-8")
PAYLOAD_BYTES_MAX = 7000  # the server's own limit is 8,000
_RETRY_SECONDS = 1.0
_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


class PostgresWake:
    """`Wake` for all processes on one database.

    `url` must lead to the server itself, not to a transaction pooler: LISTEN needs a session of its
    own. While it cannot be reached, rings stay within the process and everybody else polls.
    """

    def __init__(self, url: str, clock: Clock | None = None) -> None:
        self._url = url
        self._here = InProcessWake(clock)
        self._sender = new_id("wrk")  # one's own rings come back too, and were heard already
        self._rung: set[str] = set()
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ring(self, *topics: str) -> None:
        """Wake who listens in this process, and soon those in the others. From any thread."""
        self._here.ring(*topics)
        if self._loop is not None and topics:
            self._loop.call_soon_threadsafe(self._pass_on, topics)

    def _pass_on(self, topics: Sequence[str]) -> None:
        self._rung.update(topics)
        self._news.set()

    def listen(self, *topics: str) -> AbstractContextManager[Bell]:
        """An ear at `topics`."""
        return self._here.listen(*topics)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Carry rings to and from other processes while inside."""
        self._loop = asyncio.get_running_loop()
        task = asyncio.create_task(self._run(), name="wake")
        try:
            yield
        finally:
            self._loop = None
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            try:
                await self._carry()
            except _FAULTS as error:
                _logger.warning("rings do not reach other processes, which poll meanwhile: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _carry(self) -> None:
        connection = await asyncpg.connect(
            self._url,
            timeout=10,
            command_timeout=10,
            statement_cache_size=0,
            server_settings={"synchronous_commit": "off"},  # what is told of is on disk; a ring need not be
        )
        connection.add_termination_listener(lambda _: self._news.set())
        try:
            await connection.add_listener(CHANNEL, self._hear)
            self._here.ring(*self._here.topics)  # whatever was rung while nobody carried it
            while not connection.is_closed():
                await self._news.wait()
                await self._notify(connection)
        finally:
            with contextlib.suppress(*_FAULTS):
                await connection.close(timeout=1)

    async def _notify(self, connection: Any) -> None:
        self._news.clear()
        topics, self._rung = sorted(self._rung), set()
        for payload in _payloads(self._sender, topics):
            await connection.execute(_NOTIFY, CHANNEL, payload)

    def _hear(self, _connection: Any, _pid: int, _channel: str, payload: str) -> None:
        sender, *topics = json.loads(payload)
        if sender != self._sender:
            self._here.ring(*topics)


def _payloads(sender: str, topics: Sequence[str]) -> Iterator[str]:
    """Messages that the server takes, with the sender first."""
    part, size = [sender], len(sender)
    for topic in topics:
        if size + len(topic) > PAYLOAD_BYTES_MAX:
            yield json.dumps(part)
            part, size = [sender], len(sender)
        part.append(topic)
        size += len(topic.encode()) + 4
    if len(part) > 1:
        yield json.dumps(part)
