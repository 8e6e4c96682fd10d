"""The writer thread: many transactions to a commit, each on its own feet."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.commands.flow import Done
from tempa.adapters.stores.sqlite.connections import open_writer
from tempa.adapters.stores.sqlite.writer import BATCH_MAX, Writer
from tempa.core.errors import StoreUnavailable
from tempa.testing.contracts.samples import a_key

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tempa.testing.contracts.store import StoreBench

PATIENCE_SECONDS = 10.0


class Notes:
    """A table of one column, a writer to it, and what it rang."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rings: list[set[str]] = []
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table note (text text primary key)")
        self.writer = Writer(partial(open_writer, path), lambda *topics: self.rings.append(set(topics)))
        self._gate = threading.Event()

    async def write(self, text: str, *topics: str) -> str:
        def transaction(connection: sqlite3.Connection) -> Done[str]:
            connection.execute("insert into note values (?)", [text])
            return Done(f"wrote {text}", topics)

        return await self.writer.do(transaction)

    @asynccontextmanager
    async def in_one_batch(self) -> AsyncIterator[None]:
        """What is asked for inside waits behind a transaction that ends when the block does."""
        started = threading.Event()

        def wait(_: sqlite3.Connection) -> Done[None]:
            started.set()
            assert self._gate.wait(PATIENCE_SECONDS)
            return Done(None)

        first = asyncio.create_task(self.writer.do(wait))
        await asyncio.to_thread(started.wait, PATIENCE_SECONDS)
        try:
            yield
        finally:
            self._gate.set()
            await first
            self._gate.clear()

    def texts(self) -> list[str]:
        """What another process would see."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [text for (text,) in connection.execute("select text from note order by rowid")]


@pytest.fixture
async def notes(tmp_path: Path) -> AsyncIterator[Notes]:
    notes = Notes(tmp_path / "notes.db")
    yield notes
    await notes.writer.close()


async def test_what_waits_together_is_flushed_together(notes: Notes) -> None:
    async with asyncio.TaskGroup() as group, notes.in_one_batch():
        tasks = [group.create_task(notes.write(str(number))) for number in range(100)]
        await _all_asked(tasks)

    assert notes.writer.counts.commands == 101
    assert notes.writer.counts.commits == 2
    assert notes.texts() == [str(number) for number in range(100)]
    assert [task.result() for task in tasks] == [f"wrote {number}" for number in range(100)]


async def test_a_batch_has_a_bound(notes: Notes) -> None:
    async with asyncio.TaskGroup() as group, notes.in_one_batch():
        tasks = [group.create_task(notes.write(str(number))) for number in range(BATCH_MAX + 1)]
        await _all_asked(tasks)

    assert notes.writer.counts.commits == 3


async def test_who_fails_fails_alone(notes: Notes) -> None:
    def stumble(connection: sqlite3.Connection) -> Done[None]:
        connection.execute("insert into note values ('half')")
        raise ZeroDivisionError

    async with notes.in_one_batch():
        tasks = [
            asyncio.create_task(notes.write("before")),
            asyncio.create_task(notes.writer.do(stumble)),
            asyncio.create_task(notes.write("before")),  # the same text: the table refuses it
            asyncio.create_task(notes.write("after")),
        ]
        await _all_asked(tasks)
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert results[0] == "wrote before"
    assert isinstance(results[1], ZeroDivisionError)
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert results[3] == "wrote after"
    assert notes.texts() == ["before", "after"]
    assert notes.writer.counts.commits == 2


async def test_a_fault_of_the_disk_takes_the_whole_batch_with_it(notes: Notes) -> None:
    """SQLite may have rolled back everything by itself: nobody of the batch may be acknowledged."""

    def hit_the_end(_: sqlite3.Connection) -> Done[None]:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    async with notes.in_one_batch():
        tasks = [
            asyncio.create_task(notes.write("before", "topic")),
            asyncio.create_task(notes.writer.do(hit_the_end)),
            asyncio.create_task(notes.write("after", "topic")),
        ]
        await _all_asked(tasks)
    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(result) for result in results] == [StoreUnavailable] * 3
    assert notes.texts() == []
    assert not set().union(*notes.rings)
    assert await notes.write("before") == "wrote before"


async def test_who_is_cancelled_has_written_all_the_same(notes: Notes) -> None:
    async with notes.in_one_batch():
        leaving = asyncio.create_task(notes.write("leaving"))
        staying = asyncio.create_task(notes.write("staying"))
        await _all_asked([leaving, staying])
        leaving.cancel()
        await asyncio.wait([leaving])

    assert leaving.cancelled()
    assert await staying == "wrote staying"
    assert notes.texts() == ["leaving", "staying"]


async def test_topics_are_rung_once_all_is_written_and_before_anyone_is_answered(notes: Notes) -> None:
    rung_at_answer = []

    async def ask(text: str) -> None:
        await notes.write(text, "all", text)
        rung_at_answer.append(set().union(*notes.rings))

    async with notes.in_one_batch():
        tasks = [asyncio.create_task(ask(text)) for text in ("a", "b")]
        await _all_asked(tasks)
        assert not set().union(*notes.rings)
    await asyncio.gather(*tasks)

    assert rung_at_answer == [{"all", "a", "b"}] * 2


async def test_who_failed_rings_nobody(notes: Notes) -> None:
    await notes.write("once", "first")
    with pytest.raises(sqlite3.IntegrityError):
        await notes.write("once", "second")

    assert set().union(*notes.rings) == {"first"}


async def test_a_bell_that_breaks_keeps_nobody_waiting(notes: Notes) -> None:
    broken: list[BaseException | None] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: broken.append(context.get("exception")))
    notes.writer._ring = lambda *_: 1 / 0  # type: ignore[assignment]

    assert await asyncio.wait_for(notes.write("text", "topic"), PATIENCE_SECONDS) == "wrote text"
    assert [type(error) for error in broken] == [ZeroDivisionError]


async def test_transactions_run_in_the_order_they_were_asked_for(notes: Notes) -> None:
    texts = [f"{number:04}" for number in range(1500)]
    await asyncio.gather(*(notes.write(text) for text in texts))

    assert notes.texts() == texts


async def test_closing_finishes_what_was_asked_for_and_takes_no_more(notes: Notes) -> None:
    async with notes.in_one_batch():
        tasks = [asyncio.create_task(notes.write(str(number))) for number in range(10)]
        await _all_asked(tasks)
        closing_down = asyncio.create_task(notes.writer.close())
        await _all_asked([closing_down])
        with pytest.raises(StoreUnavailable, match="closed"):
            await notes.write("too late")
    await closing_down
    await notes.writer.close()

    assert [await task for task in tasks] == [f"wrote {number}" for number in range(10)]
    assert len(notes.texts()) == 10


def test_a_loop_that_is_gone_hurts_nobody(tmp_path: Path) -> None:
    """Its caller went away with it; the transaction commits, and the writer goes on."""
    notes = Notes(tmp_path / "notes.db")
    entered, leave = threading.Event(), threading.Event()

    def linger(connection: sqlite3.Connection) -> Done[None]:
        entered.set()
        assert leave.wait(PATIENCE_SECONDS)
        connection.execute("insert into note values ('lingered')")
        return Done(None)

    async def ask_and_go() -> None:
        asking = asyncio.create_task(notes.writer.do(linger))
        await asyncio.to_thread(entered.wait, PATIENCE_SECONDS)
        asking.cancel()

    async def come_later() -> None:
        await notes.write("later")
        await notes.writer.close()

    asyncio.run(ask_and_go())
    leave.set()
    asyncio.run(come_later())

    assert notes.texts() == ["lingered", "later"]


async def test_sixty_four_callers_share_their_flushes(bench: StoreBench) -> None:
    before = bench.store.writes.commits  # type: ignore[attr-defined]
    room = asyncio.Semaphore(64)

    async def ask(number: int) -> None:
        async with room:
            await bench.admit(key=a_key(f"k{number}"))

    await asyncio.gather(*(ask(number) for number in range(640)))

    assert bench.store.writes.commits - before < 640 / 8  # type: ignore[attr-defined]


async def _all_asked(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Every task has run up to its wait for the writer: one turn of the loop starts them all."""
    await asyncio.wait(tasks, timeout=0)
    assert not any(task.done() for task in tasks)


def test_the_writer_flushes_every_commit_and_checks_every_reference(tmp_path: Path) -> None:
    """FULL (2): with NORMAL a commit that was acknowledged can be gone after a power cut."""
    with closing(open_writer(tmp_path / "notes.db")) as connection:
        modes = {
            name: connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }

    assert modes == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_where_no_write_ahead_log_can_be_held_nothing_is_opened() -> None:
    with pytest.raises(sqlite3.OperationalError, match="write-ahead log"):
        open_writer(Path(":memory:"))
