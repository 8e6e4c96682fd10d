"""Readers see what is committed, all of it at one moment, and can change nothing."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands.flow import Done
from tempa.adapters.stores.sqlite.connections import open_reader, open_writer
from tempa.adapters.stores.sqlite.readers import Readers
from tempa.core.errors import StoreUnavailable
from tempa.testing.contracts.samples import ACCOUNT, a_new_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tempa.testing.contracts.store import StoreBench

PATIENCE_SECONDS = 10.0


@pytest.fixture
async def readers(tmp_path: Path) -> AsyncIterator[Readers]:
    path = tmp_path / "notes.db"
    with closing(open_writer(path)) as connection:
        connection.execute("create table note (text text)")
        readers = Readers(partial(open_reader, path), 2)
        yield readers
        await readers.close()


def count(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("select count(*) from note").fetchone()
    return int(number)


async def test_a_reader_never_sees_what_is_not_committed(bench: StoreBench) -> None:
    job = await bench.admit()
    inside, leave = threading.Event(), threading.Event()

    def cancel_slowly(connection: sqlite3.Connection) -> Done[None]:
        connection.execute("update job set stage = 'half'")
        inside.set()
        assert leave.wait(PATIENCE_SECONDS)
        return Done(None)

    writing = asyncio.create_task(bench.store._writer.do(cancel_slowly))  # type: ignore[attr-defined]
    await asyncio.to_thread(inside.wait, PATIENCE_SECONDS)
    meanwhile = await bench.reread(job)
    leave.set()
    await writing

    assert meanwhile.stage is None
    assert (await bench.reread(job)).stage == "half"


async def test_a_reader_cannot_write(readers: Readers) -> None:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("insert into note values ('mine')")

    with pytest.raises(StoreUnavailable, match="readonly"):
        await readers.do(write)

    assert await readers.do(count) == 0


async def test_one_read_sees_one_moment(readers: Readers, tmp_path: Path) -> None:
    looked, written = threading.Event(), threading.Event()

    def look_twice(connection: sqlite3.Connection) -> tuple[int, int]:
        first = count(connection)
        looked.set()
        assert written.wait(PATIENCE_SECONDS)
        return first, count(connection)

    looking = asyncio.create_task(readers.do(look_twice))
    await asyncio.to_thread(looked.wait, PATIENCE_SECONDS)
    with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as writer:
        writer.execute("insert into note values ('new')")
    written.set()

    assert await looking == (0, 0)
    assert await readers.do(count) == 1


async def test_reads_run_side_by_side_and_no_more_than_there_are_readers(readers: Readers) -> None:
    both = threading.Barrier(2)

    def meet(_: sqlite3.Connection) -> int:
        both.wait(PATIENCE_SECONDS)
        return threading.get_ident()

    pairs = await asyncio.gather(*(readers.do(meet) for _ in range(6)))

    assert len(set(pairs)) == 2


async def test_a_failed_read_leaves_its_reader_usable(readers: Readers) -> None:
    for _ in range(5):  # more often than there are readers
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await readers.do(lambda connection: connection.execute("select * from nowhere"))

    assert await readers.do(count) == 0


async def test_a_disk_that_cannot_be_read_is_an_unavailable_store(tmp_path: Path) -> None:
    readers = Readers(partial(open_reader, tmp_path / "no" / "such" / "folder.db"), 1)

    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await readers.do(count)

    await readers.close()


async def test_nothing_is_read_after_closing(bench: StoreBench) -> None:
    await bench.store.close()  # type: ignore[attr-defined]

    with pytest.raises(StoreUnavailable, match="closed"):
        await bench.store.job(ACCOUNT, "cad_1")
    with pytest.raises(StoreUnavailable, match="closed"):
        await bench.store.admit(a_new_job(bench.clock))
