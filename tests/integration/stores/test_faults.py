"""A full disk and a locked file: said, not guessed, and over when they are over."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.commands.flow import Done
from tempa.adapters.stores.sqlite.connections import open_reader, open_writer
from tempa.adapters.stores.sqlite.readers import Readers
from tempa.adapters.stores.sqlite.schema import prepare
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.stores.sqlite.writer import Writer
from tempa.core.errors import StoreUnavailable
from tempa.core.work import job_topic
from tempa.jobs.model import Verdict
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import ACCOUNT, a_key, a_new_job

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL_DISK = Path(__file__).with_name("small_disk.py")


def store_over(
    path: Path, connect: Callable[[], sqlite3.Connection], rung: set[str] | None = None
) -> SqliteStore:
    """A store whose writer connects in its own way; what it rings is added to `rung`."""
    prepare(path)
    heard: set[str] = set() if rung is None else rung
    writer = Writer(connect, lambda *topics: heard.update(topics))
    return SqliteStore(writer, Readers(partial(open_reader, path), 1), ManualClock())


def open_impatient(path: Path) -> sqlite3.Connection:
    connection = open_writer(path)
    connection.execute("pragma busy_timeout = 0")
    return connection


def ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        return {ident for (ident,) in connection.execute("select id from job")}


def open_files() -> set[str]:
    """What this process has open, by path."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            found.add(str(entry.readlink()))
    return found


async def test_a_full_database_acknowledges_nothing_and_recovers(path: Path) -> None:
    rung: set[str] = set()
    store = store_over(path, partial(open_writer, path), rung)

    def allow_pages(count: int) -> Callable[[sqlite3.Connection], Done[int]]:
        return lambda connection: Done(
            int(connection.execute(f"pragma max_page_count = {count}").fetchone()[0])
        )

    used = await store._writer.do(allow_pages(1))
    await store._writer.do(allow_pages(used + 3))
    clock = ManualClock()
    news = [a_new_job(clock, key=a_key(str(n)), work={"filler": "x" * 9000}) for n in range(20)]
    results = await asyncio.gather(*(store.admit(new) for new in news), return_exceptions=True)
    refused = [new for new, result in zip(news, results, strict=True) if isinstance(result, StoreUnavailable)]
    silent = [new.id for new in refused if job_topic(new.id) not in rung]
    still_read = await store.counts()
    await store._writer.do(allow_pages(100_000))
    again = [await store.admit(new) for new in refused]
    await store.close()

    assert len(refused) >= 10
    assert silent == [new.id for new in refused]
    assert sum(still_read.values()) == len(news) - len(refused)
    assert {admission.verdict for admission in again} == {Verdict.ADMITTED}
    assert ids(path) == {new.id for new in news}


async def test_a_file_that_cannot_grow_acknowledges_nothing_and_recovers(path: Path) -> None:
    """The write itself fails, as on a full disk; the process is not restarted."""
    finished = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(SMALL_DISK), str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    told = json.loads(finished.stdout)

    assert len(told["last"]) == 10
    assert set(told["acknowledged"]) == ids(path)
    assert not set(told["refused"]) & ids(path)
    assert {error.partition(":")[0] for error in told["errors"]} == {"The store cannot be written"}


async def test_a_file_somebody_else_locks_is_unavailable_while_he_does(path: Path) -> None:
    store = store_over(path, partial(open_impatient, path))
    first = await store.admit(a_new_job(ManualClock()))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin immediate")

        with pytest.raises(StoreUnavailable, match="locked"):
            await store.admit(a_new_job(ManualClock()))

        assert await store.job(ACCOUNT, first.job.id) == first.job
    assert (await store.admit(a_new_job(ManualClock()))).verdict is Verdict.ADMITTED
    assert store.writes.failures == 1
    await store.close()


async def test_a_connection_that_cannot_be_opened_is_tried_again(path: Path) -> None:
    attempts = 0

    def connect() -> sqlite3.Connection:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            return open_writer(path / "not" / "there.db")
        return open_writer(path)

    store = store_over(path, connect)

    with pytest.raises(StoreUnavailable, match="unable to open"):
        await store.admit(a_new_job(ManualClock()))

    assert (await store.admit(a_new_job(ManualClock()))).verdict is Verdict.ADMITTED
    await store.close()


def test_a_connection_that_cannot_be_set_up_is_closed(path: Path) -> None:
    """And not left to the collector: each batch on a broken disk would leave one more behind."""
    path.write_bytes(b"no database" * 1000)

    with pytest.raises(sqlite3.DatabaseError) as caught:
        open_writer(path)

    assert str(path) not in open_files()  # though the error, held here, still holds the frames
    assert caught.value.sqlite_errorname == "SQLITE_NOTADB"


async def test_a_connection_in_an_unknown_state_is_replaced(path: Path) -> None:
    """Closed under the writer, it can neither commit nor roll back."""
    store = store_over(path, partial(open_writer, path))

    def break_it(connection: sqlite3.Connection) -> Done[None]:
        connection.close()
        return Done(None)

    with pytest.raises(StoreUnavailable):
        await store._writer.do(break_it)

    assert (await store.admit(a_new_job(ManualClock()))).verdict is Verdict.ADMITTED
    await store.close()
