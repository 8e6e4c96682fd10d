"""Runs the commands' flows on PostgreSQL: a transaction each, every answer awaited."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from aiosql.adapters.asyncpg import AsyncPGAdapter

from tempa.adapters.stores.commands.flow import Access, Ask, Moment, WriteCounts
from tempa.adapters.stores.postgres.connections import ACQUIRE_SECONDS, BEGIN, BEGIN_READING, is_fault
from tempa.adapters.stores.sql import load_queries
from tempa.core.clock import to_ms
from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import ParamSpec

    from tempa.adapters.stores.commands.flow import Done, Flow, Question
    from tempa.core.clock import Clock

    P = ParamSpec("P")

T = TypeVar("T")


class _CountingAdapter(AsyncPGAdapter):
    """aiosql's own answers a write with the server's "UPDATE 3"."""

    async def insert_update_delete(self, conn: Any, query_name: str, sql: str, parameters: Any) -> int:
        tag: str = await super().insert_update_delete(conn, query_name, sql, parameters)  # type: ignore[no-untyped-call]
        return int(tag.rpartition(" ")[2])


SQL: Any = load_queries("postgres", _CountingAdapter)


class PostgresAccess(Access):
    """The way to write and to read. `clock`: in tests, in place of the database's own."""

    def __init__(self, pool: Any, ring: Callable[..., None], clock: Clock | None = None) -> None:
        super().__init__()
        self._pool, self._ring, self._clock = pool, ring, clock
        self.writes = WriteCounts()

    async def _write(self, flow: Callable[P, Flow[Done[T]]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            async with self._transaction(BEGIN) as connection:
                done = await self._run(connection, flow(*args, **kwargs))
        except StoreUnavailable:
            self.writes.failures += 1
            raise
        self.writes.commits += 1
        self.writes.commands += 1
        self._ring(*done.topics)
        return done.answer

    async def _read(self, flow: Callable[P, Flow[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._transaction(BEGIN_READING) as connection:
            return await self._run(connection, flow(*args, **kwargs))

    @contextlib.asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Any]:
        try:
            async with self._pool.acquire(timeout=ACQUIRE_SECONDS) as connection:
                await connection.execute(begin)
                try:
                    yield connection
                except BaseException:
                    await _roll_back(connection)
                    raise
                crash_point("commit.asked")
                await connection.execute("commit")
                crash_point("commit.done")
        except Exception as error:
            if is_fault(error):
                why = str(error) or type(error).__name__  # a timeout has no words
                raise StoreUnavailable(f"The database cannot be used: {why}") from error
            raise

    async def _run(self, connection: Any, flow: Flow[T]) -> T:
        answer: Any = None
        while True:
            try:
                question = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = await self._answer(connection, question)

    async def _answer(self, connection: Any, question: Question) -> Any:
        if not isinstance(question, Ask):
            return await self._moment(connection)
        parameters = question.parameters
        if question.rows is not None:
            if not question.rows:
                return []
            parameters = {name: [row[name] for row in question.rows] for name in question.rows[0]}
        answer = getattr(SQL, question.query)(connection, **parameters)
        if hasattr(answer, "__aiter__"):
            return [row async for row in answer]
        return await answer

    async def _moment(self, connection: Any) -> Moment:
        """One clock for all that share the database, for leases too."""
        now = await SQL.now(connection) if self._clock is None else to_ms(self._clock.now())
        return Moment(now, now)


async def _roll_back(connection: Any) -> None:
    """A connection that cannot even do this is dropped by the pool."""
    with contextlib.suppress(Exception):
        await connection.execute("rollback")
