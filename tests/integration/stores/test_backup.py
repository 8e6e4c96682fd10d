"""A copy of the database that is one moment of it, whatever is written meanwhile."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite import backup
from tempa.adapters.stores.sqlite.backup import contents, copy_database
from tempa.adapters.stores.sqlite.schema import prepare
from tempa.core.errors import StoreUnavailable
from tempa.testing.contracts.samples import COMPLETED, RESULT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tempa.testing.contracts.store import StoreBench

ACCOUNTS = 50_000
BALANCE = "select count(*), sum(created_at) from account"


def unheard(_done: int, _of: int) -> None:
    """Nobody wants to know."""


@pytest.fixture
def busy(path: Path) -> Iterator[sqlite3.Connection]:
    """The connection of somebody who writes a database of 50,000 rows."""
    prepare(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = off")
        connection.execute(
            """
            insert into account (id, created_at)
            with recursive n(i) as (select 1 union all select i + 1 from n where i < :count)
            select 'a' || i, 1 from n
            """,
            {"count": ACCOUNTS},
        )
        yield connection


def value(path: Path, question: str) -> tuple[object, ...]:
    with closing(sqlite3.connect(path)) as connection:
        row: tuple[object, ...] = connection.execute(question).fetchone()
    return row


def test_commits_meanwhile_neither_show_nor_begin_it_anew(
    busy: sqlite3.Connection, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every page changes after each step of the copy: rows come, and rows that were copied already change."""
    monkeypatch.setattr(backup, "_PAGES", 50)
    seen: list[tuple[int, int]] = []

    def told(done: int, of: int) -> None:
        seen.append((done, of))
        busy.execute("insert into account (id, created_at) values (?, 1000)", [f"new{done}"])
        busy.execute("update account set created_at = created_at + 1")

    copy_database(path, tmp_path / "copy.db", told)

    assert len(seen) > 3
    assert [done for done, _ in seen] == [*range(50, seen[-1][1], 50), seen[-1][1]]  # never from the start
    assert value(tmp_path / "copy.db", BALANCE) == (ACCOUNTS, ACCOUNTS)
    assert value(path, BALANCE) == (ACCOUNTS + len(seen), pytest.approx(ACCOUNTS * len(seen), rel=0.5))


def test_a_copy_is_one_private_file_with_the_schemas_number(
    busy: sqlite3.Connection, path: Path, tmp_path: Path
) -> None:
    busy.execute("insert into account (id, created_at) values ('in the log', 1)")  # not checkpointed
    folder = tmp_path / "there"
    folder.mkdir()
    copy_database(path, folder / "copy.db", unheard)

    assert [entry.name for entry in folder.iterdir()] == ["copy.db"]
    assert (folder / "copy.db").stat().st_mode & 0o777 == 0o600
    assert value(folder / "copy.db", "select count(*) from account") == (ACCOUNTS + 1,)
    assert value(folder / "copy.db", "pragma user_version") == value(path, "pragma user_version")
    assert value(folder / "copy.db", "pragma journal_mode") == ("delete",)


def test_a_copy_replaces_nothing(busy: sqlite3.Connection, path: Path, tmp_path: Path) -> None:
    del busy
    (tmp_path / "copy.db").write_text("mine")

    with pytest.raises(FileExistsError):
        copy_database(path, tmp_path / "copy.db", unheard)

    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_damaged_database_is_no_backup(busy: sqlite3.Connection, path: Path, tmp_path: Path) -> None:
    """A page of the table is overwritten: SQLite copies it without a look at it."""
    busy.execute("pragma wal_checkpoint(truncate)")
    (page,) = busy.execute("select rootpage from sqlite_schema where name = 'account'").fetchone()
    busy.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))

    with pytest.raises(StoreUnavailable):
        copy_database(path, tmp_path / "copy.db", unheard)


async def test_contents_name_the_files_of_all_that_is_kept(
    bench: StoreBench, path: Path, tmp_path: Path
) -> None:
    kept, removed = await bench.start(), await bench.start(lane="other")
    for claimed in (kept, removed):
        assert await bench.store.settle(claimed.lease, COMPLETED)
    assert await bench.store.mark_removed(removed.job.account, removed.job.id)
    await bench.admit()
    copy_database(path, tmp_path / "copy.db", unheard)

    held = contents(tmp_path / "copy.db")

    assert (held.counts["jobs"], held.counts["unfinished_jobs"]) == (3, 1)
    (artifact,) = RESULT.artifacts
    assert [(one.owner, one.key, one.sha256, one.size_bytes) for one in held.files] == [
        (kept.job.id, artifact.key, artifact.sha256, artifact.size_bytes)
    ]


async def test_contents_name_the_inputs_of_jobs(bench: StoreBench, path: Path, tmp_path: Path) -> None:
    inputs = {"image": {"sha256": "a" * 64, "file_size_bytes": 7}, "depth": {"url": "https://example.com/d"}}
    with_inputs = await bench.admit(inputs=inputs)
    await bench.admit()
    copy_database(path, tmp_path / "copy.db", unheard)

    held = contents(tmp_path / "copy.db")

    assert [(one.owner, one.key, one.sha256, one.size_bytes) for one in held.files] == [
        (with_inputs.id, f"{with_inputs.id}.a0/image", "a" * 64, 7)
    ]
