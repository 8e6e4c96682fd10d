"""Runs the commands' flows on SQLite: writes in the writer's thread, reads in the readers'."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from aiosql.adapters.sqlite3 import SQLite3Adapter

from tempa.adapters.stores.commands.flow import Access, Ask, Moment, Sole, Timed
from tempa.adapters.stores.sql import load_queries
from tempa.adapters.stores.sqlite import rows
from tempa.core.clock import to_ms

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import ParamSpec

    from tempa.adapters.stores.commands.flow import Done, Flow, Question
    from tempa.adapters.stores.sqlite.readers import Readers
    from tempa.adapters.stores.sqlite.writer import Writer
    from tempa.core.clock import Clock

    P = ParamSpec("P")

T = TypeVar("T")


class _RowAdapter(SQLite3Adapter):
    """aiosql's own takes the one value of a row only from tuples, lists and dicts, not from sqlite3.Row."""

    def select(  # type: ignore[override]  # aiosql's is a generator
        self,
        conn: sqlite3.Connection,
        query_name: str,  # noqa: ARG002 - the signature is aiosql's
        sql: str,
        parameters: Any,
        record_class: Any = None,  # noqa: ARG002 - no query of ours has one
    ) -> Iterator[Any]:
        """The cursor itself: with a generator around it each row took twice as long."""
        return conn.execute(sql, parameters)

    def select_value(
        self,
        conn: sqlite3.Connection,
        query_name: str,  # noqa: ARG002 - the signature is aiosql's
        sql: str,
        parameters: Any,
    ) -> Any:
        with closing(conn.execute(sql, parameters)) as cursor:
            row = cursor.fetchone()
        return None if row is None else row[0]


SQL: Any = load_queries("sqlite", _RowAdapter)

_ROWS = {
    query.__name__: query
    for query in (
        rows.start_jobs,
        rows.end_attempts,
        rows.beat,
        rows.open_delivery_attempts,
        rows.end_delivery_attempts,
        rows.insert_nonces,
        rows.insert_signatures,
        rows.insert_receipts,
        rows.insert_outflows,
    )
}


class SqliteAccess(Access):
    """The way to write and to read."""

    def __init__(self, writer: Writer, readers: Readers, clock: Clock) -> None:
        super().__init__()
        self._writer, self._readers, self._clock = writer, readers, clock

    async def _write(self, flow: Callable[P, Flow[Done[T]]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._writer.do(lambda connection: self._run(connection, flow(*args, **kwargs)))

    async def _read(self, flow: Callable[P, Flow[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.do(lambda connection: self._run(connection, flow(*args, **kwargs)))

    def _run(self, connection: sqlite3.Connection, flow: Flow[T]) -> T:
        answer: Any = None
        while True:
            try:
                question = flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = self._answer(connection, question)

    def _answer(self, connection: sqlite3.Connection, question: Question) -> Any:
        if isinstance(question, Timed):
            return self._answer(connection, question.ask), self._moment()
        if isinstance(question, Sole):
            question = question.ask
        if not isinstance(question, Ask):
            return self._moment()
        if question.query in _ROWS:
            return _ROWS[question.query](SQL, connection, question.rows or ())
        query = getattr(SQL, question.query)
        if question.rows is not None:
            return query(connection, question.rows)
        answer = query(connection, **question.parameters)
        return list(answer) if isinstance(answer, Iterator) else answer

    def _moment(self) -> Moment:
        return Moment(to_ms(self._clock.now()), int(self._clock.monotonic() * 1000))
