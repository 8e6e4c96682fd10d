"""A database is new, migrated or refused; in each case whole, whoever starts beside it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import asyncpg
import pytest

from tempa.adapters.stores.migrations import FOLDER, SCHEMA_VERSION, SchemaMismatch, due
from tempa.adapters.stores.postgres import schema
from tempa.adapters.stores.postgres.access import SQL
from tempa.adapters.stores.postgres.schema import prepare, version_of
from tempa.core.errors import StoreUnavailable
from tests.services import fresh_name

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.postgres import PostgresCluster
    from tests.integration.postgres.sessions import Session

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

EVERYTHING = """
select 'column', table_name || '.' || column_name, data_type || is_nullable || coalesce(column_default, '')
from information_schema.columns where table_schema = 'public'
union all select 'index', indexname, indexdef from pg_indexes where schemaname = 'public'
union all select 'constraint', conname, pg_get_constraintdef(oid) from pg_constraint
    where connamespace = 'public'::regnamespace
union all select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
union all select 'function', proname, pg_get_functiondef(oid) from pg_proc
    where pronamespace = 'public'::regnamespace
union all select 'storage', relname, array_to_string(reloptions, ',') from pg_class
    where relnamespace = 'public'::regnamespace
order by 1, 2, 3
"""


@pytest.fixture
def empty(cluster: PostgresCluster) -> str:
    """The URL of a database without any table."""
    name = fresh_name()
    cluster.execute(f"create database {name}")
    return cluster.url(name)


async def everything(url: str) -> list[tuple[str, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(EVERYTHING)]
    finally:
        await connection.close()


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The migrations of a release to come: a copy of ours, with room for one more."""
    folder = tmp_path / "migrations"
    shutil.copytree(FOLDER, folder)
    (folder / "versions" / f"{NEXT:04}_more.py").write_text(NEXT_REVISION)
    return folder


def add(later: Path, script: str) -> None:
    (later / "sql" / "postgresql" / f"{NEXT:04}_more.sql").write_text(script)


async def test_preparing_twice_changes_nothing(empty: str) -> None:
    await prepare(empty)
    before = await everything(empty)
    await prepare(empty)

    assert len(before) > 100
    assert await everything(empty) == before


async def test_eight_that_start_at_once_make_one_schema(empty: str, database: str) -> None:
    await asyncio.gather(*(prepare(empty) for _ in range(8)))

    assert await everything(empty) == await everything(database)


async def test_a_migrated_schema_is_the_one_from_scratch(empty: str, database: str) -> None:
    """By way of Alembic, as a database of an older release is brought up."""
    connection = await asyncpg.connect(empty)
    for script in due("postgresql", 0, FOLDER):
        await connection.execute(script.text)
        await SQL.set_schema_version(connection, version=script.version)
    assert await version_of(connection) == SCHEMA_VERSION
    await connection.close()

    assert await everything(empty) == await everything(database)


async def test_a_due_migration_is_run_once_by_eight_and_keeps_what_is_there(
    database: str, session: Session, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)
    await session.run("insert into account (id, created_at) values ('acme', 1)")
    add(later, "alter table account add column plan text;\ncreate table more (x integer);\n")

    await asyncio.gather(*(prepare(database, later) for _ in range(8)))

    (row,) = await session.rows("select id, created_at, weight, running_max, plan from account")
    assert dict(row) == {"id": "acme", "created_at": 1, "weight": 1.0, "running_max": None, "plan": None}
    assert await version_of(session.connection) == NEXT


async def test_a_migration_that_goes_wrong_changes_nothing(
    database: str, session: Session, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "SCHEMA_VERSION", NEXT)
    add(later, "create table more (x integer);\nalter table nowhere add column x integer;\n")
    before = await everything(database)

    with pytest.raises(asyncpg.UndefinedTableError):
        await prepare(database, later)

    assert await everything(database) == before
    assert await version_of(session.connection) == SCHEMA_VERSION


async def test_a_newer_database_is_refused_and_left_alone(database: str, session: Session) -> None:
    await SQL.set_schema_version(session.connection, version=SCHEMA_VERSION + 1)
    before = await everything(database)

    with pytest.raises(SchemaMismatch, match=rf"newer Tempa \(schema {SCHEMA_VERSION + 1}"):
        await prepare(database)

    assert await everything(database) == before


async def test_a_database_of_something_else_is_refused_and_left_alone(empty: str) -> None:
    connection = await asyncpg.connect(empty)
    await connection.execute("create table job (theirs text)")
    await connection.close()
    before = await everything(empty)

    with pytest.raises(SchemaMismatch, match="something else"):
        await prepare(empty)

    assert await everything(empty) == before


async def test_tempa_lives_beside_others_in_a_schema_of_its_own(empty: str) -> None:
    connection = await asyncpg.connect(empty)
    await connection.execute("create table job (theirs text); create schema tempa")
    await connection.close()

    await prepare(f"{empty}&options=-csearch_path%3Dtempa")
    await prepare(f"{empty}&options=-csearch_path%3Dtempa")

    connection = await asyncpg.connect(empty)
    assert await connection.fetchval("select version from tempa.tempa_schema") == SCHEMA_VERSION
    assert await connection.fetchval("select count(*) from pg_tables where schemaname = 'public'") == 1
    await connection.close()


async def test_a_database_that_is_not_there_is_unavailable(cluster: PostgresCluster) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await prepare(cluster.url("nowhere"))


def test_a_database_that_is_ready_is_opened_without_loading_alembic(database: str) -> None:
    """0.8 s of every start otherwise."""
    script = (
        "import asyncio, sys; from tempa.adapters.stores.postgres.schema import prepare;"
        "asyncio.run(prepare(sys.argv[1])); print({'alembic', 'sqlalchemy'} & set(sys.modules))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, database],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (finished.returncode, finished.stdout) == (0, "set()\n"), finished.stderr


async def test_a_database_that_tells_commits_too_early_is_warned_of(
    cluster: PostgresCluster, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = database.partition("@/")[2].partition("?")[0]
    for value, warnings in (("on", 0), ("off", 1)):
        caplog.clear()
        cluster.execute(f"alter database {name} set synchronous_commit = {value}")
        await prepare(database)

        assert [record.levelname for record in caplog.records] == ["WARNING"] * warnings
