"""A database is new, migrated or refused; in each case it ends up with the same tables."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.migrations import FOLDER, SCHEMA_VERSION, SchemaMismatch
from tempa.adapters.stores.sqlite import schema
from tempa.adapters.stores.sqlite.connections import open_writer
from tempa.adapters.stores.sqlite.schema import migrate, prepare, version_of
from tempa.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NEXT = SCHEMA_VERSION + 1
NEXT_REVISION = f"""
from alembic import op
from pathlib import Path
from tempa.adapters.stores.migrations.runner import run_script
revision = "{NEXT:04}"
down_revision = "{SCHEMA_VERSION:04}"
def upgrade():
    run_script(op, {NEXT}, Path(__file__).parents[1])
"""


def tables(connection: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
    """All that makes up the schema."""
    rows = connection.execute(
        "select type, name, tbl_name, coalesce(sql, '') from sqlite_schema order by 1, 2"
    )
    return [tuple(row) for row in rows]


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The migrations of a release to come: a copy of ours, with room for one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(FOLDER, folder)
    (folder / "versions" / f"{NEXT:04}_more.py").write_text(NEXT_REVISION)
    return folder


def test_a_migrated_schema_is_the_one_from_scratch(tmp_path: Path) -> None:
    prepare(tmp_path / "scratch.db")
    with (
        closing(open_writer(tmp_path / "scratch.db")) as scratch,
        closing(open_writer(tmp_path / "migrated.db")) as migrated,
    ):
        migrate(migrated, 0)

        assert len(tables(scratch)) > 30
        assert tables(migrated) == tables(scratch)
        assert version_of(migrated) == version_of(scratch) == SCHEMA_VERSION


def test_preparing_twice_changes_nothing(path: Path) -> None:
    prepare(path)
    before = path.read_bytes()
    prepare(path)

    assert path.read_bytes() == before


def test_a_new_database_is_its_owners_only(path: Path) -> None:
    prepare(path)
    with closing(open_writer(path)) as connection:
        connection.execute("insert into account (id, created_at) values ('acme', 1)")
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert modes == {"tempa.db": 0o600, "tempa.db-wal": 0o600, "tempa.db-shm": 0o600}


def test_a_newer_database_is_refused_and_left_alone(path: Path) -> None:
    prepare(path)
    with closing(open_writer(path)) as connection:
        connection.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")
        before = tables(connection)

    with pytest.raises(SchemaMismatch, match=rf"newer Tempa \(schema {SCHEMA_VERSION + 1}"):
        prepare(path)

    with closing(open_writer(path)) as connection:
        assert tables(connection) == before
        assert version_of(connection) == SCHEMA_VERSION + 1


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table theirs (x)")

    with pytest.raises(SchemaMismatch, match="something else"):
        prepare(path)

    with closing(sqlite3.connect(path)) as connection:
        assert [name for _, name, _, _ in tables(connection)] == ["theirs"]


def test_a_due_migration_is_run_and_keeps_what_is_there(
    path: Path, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(path)
    with closing(open_writer(path)) as connection:
        connection.execute("insert into account (id, created_at) values ('acme', 1)")
    (later / "sql" / "sqlite" / f"{NEXT:04}_more.sql").write_text(
        "alter table account add column plan text;\n"
    )

    with closing(open_writer(path)) as connection:
        migrate(connection, SCHEMA_VERSION, later)

        assert version_of(connection) == NEXT
        (row,) = connection.execute("select id, created_at, weight, running_max, plan from account")
        assert dict(row) == {"id": "acme", "created_at": 1, "weight": 1.0, "running_max": None, "plan": None}


def test_preparing_migrates_an_older_database(
    path: Path, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(path)
    (later / "sql" / "sqlite" / f"{NEXT:04}_more.sql").write_text("create table more (x integer) strict;\n")
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)
    monkeypatch.setattr(schema.migrate, "__defaults__", (later,))

    prepare(path)

    with closing(open_writer(path)) as connection:
        assert version_of(connection) == NEXT
        assert ("table", "more", "more", "CREATE TABLE more (x integer) strict") in tables(connection)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param(
            "create table more (x integer);\ncreate table job (y integer);\n", Exception, id="fails"
        ),
        pytest.param(
            "insert into api_key values ('k', 'nobody', '', '', '', '[]', 1, null, null);\n",
            SchemaMismatch,
            id="leaves a row pointing nowhere",
        ),
    ],
)
def test_a_migration_that_goes_wrong_changes_nothing(
    path: Path, later: Path, script: str, error: type[Exception]
) -> None:
    prepare(path)
    (later / "sql" / "sqlite" / f"{NEXT:04}_more.sql").write_text(script)
    with closing(open_writer(path)) as connection:
        connection.execute("pragma foreign_keys = off")
        before = tables(connection)

        with pytest.raises(error, match=r"job|api_key"):
            migrate(connection, SCHEMA_VERSION, later)

        assert version_of(connection) == SCHEMA_VERSION
        assert tables(connection) == before
        assert not connection.in_transaction
        assert connection.execute("select count(*) from api_key").fetchone()[0] == 0


def test_a_new_store_is_opened_without_loading_alembic(path: Path) -> None:
    """0.8 s of every start otherwise."""
    script = (
        "import sys; from pathlib import Path; from tempa.adapters.stores.sqlite.schema import prepare;"
        "prepare(Path(sys.argv[1])); prepare(Path(sys.argv[1]));"
        "print({'alembic', 'sqlalchemy'} & set(sys.modules))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (finished.stdout, finished.stderr) == ("set()\n", "")


def test_an_sqlite_without_strict_tables_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))

    with pytest.raises(SchemaMismatch, match=r"needs SQLite 3\.37\.0"):
        prepare(path)

    assert not path.exists()


def tear(path: Path) -> None:
    """Half of a good database."""
    prepare(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def scribble(path: Path) -> None:
    """Its first page says what it should; nothing behind it does."""
    prepare(path)
    path.write_bytes(path.read_bytes()[:4096] + b"\xa5" * (path.stat().st_size - 4096))


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(b"hello"), lambda path: path.write_bytes(b"\0" * 8192), tear, scribble],
    ids=["a word", "zeros", "torn", "scribbled over"],
)
def test_what_is_no_database_is_told_with_the_way_out(path: Path, damage: Callable[[Path], object]) -> None:
    damage(path)
    before = path.read_bytes()

    with pytest.raises(SchemaMismatch, match="Restore it from a backup; or move it away") as caught:
        prepare(path)

    assert str(caught.value).startswith(f"{path} is not a database, or a damaged one")
    assert path.read_bytes() == before


def test_a_place_that_cannot_hold_a_database_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"")
    (path.parent / "tempa.db-wal").mkdir()  # in the way

    with pytest.raises(StoreUnavailable, match=r"tempa\.db cannot be used as a database"):
        prepare(path)
