"""Both databases have the same tables: what one query finds on one, it finds on the other."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from tempa.adapters.stores.sqlite.schema import prepare

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.integration.postgres.sessions import Session

COLUMNS = """
select table_name, column_name, is_nullable from information_schema.columns where table_schema = 'public'
"""
INDEXES = "select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'"
UNIQUE = """
select conrelid::regclass::text, string_agg(attname, ',' order by place)
from pg_constraint, unnest(conkey) with ordinality as key (number, place)
join pg_attribute on true
where attrelid = conrelid and attnum = key.number and contype in ('p', 'u')
    and connamespace = 'public'::regnamespace
group by conrelid, conname
"""
UNIQUE_ON_SQLITE = """
select tables.name, (select group_concat(name) from pragma_index_info(found.name))
from pragma_table_list as tables, pragma_index_list(tables.name) as found
where found.origin in ('u', 'pk') and tables.name not like 'sqlite_%'
"""
# A table's own integer key has no index.
NUMBERS_ON_SQLITE = """
select tables.name, column.name
from pragma_table_list as tables, pragma_table_info(tables.name) as column
where column.name = 'number' and column.pk = 1
"""

# Where the two differ by intent.
ONLY_SQLITE = {"feed"}  # PostgreSQL has the sequence feed_position
ONLY_POSTGRES = {"tempa_schema", "queue"}  # SQLite keeps the version in the file's head, and needs no marks
UNIQUE_ON_POSTGRES = {"job_work_running"}  # SQLite has one writer, whose claim looks before it takes
# From mark to mark there is one priority at a time, and an index is read either way.
ANY_DIRECTION_ON_POSTGRES = {"job_ready"}
# Entries of an SQLite index end with the row's number in any case.
NUMBER_ON_POSTGRES = {"job_work_done"}


def sqlite_shape(path: Path) -> tuple[set[tuple[str, str, bool]], dict[str, tuple[str, bool, str]]]:
    """Columns with whether they may be null; named indexes with their table, uniqueness and columns."""
    prepare(path)
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("select name from pragma_table_list")]
        columns = {
            (table, row[1], not row[3] and not row[5])
            for table in tables
            if not table.startswith("sqlite_")
            for row in connection.execute(f"pragma table_info({table})")
        }
        indexes = {
            name: (table, sql.lower().startswith("create unique"), index_body(sql))
            for name, table, sql in connection.execute(
                "select name, tbl_name, sql from sqlite_schema where type = 'index' and sql is not null"
            )
        }
    return columns, indexes


def index_body(definition: str) -> str:
    """What follows the table: columns and predicate, without the spelling of either database."""
    _, _, body = definition.lower().partition(" on ")
    body = re.sub(r" collate \"c\"", "", body)  # bytes, as SQLite compares in any case
    body = re.sub(r"::text|::integer|using btree|public\.|\bany\b|\barray\b|[()\[\]'\"]", "", body)
    return " ".join(body.replace(" in ", " = ").replace(",", " ").split())


def besides(shape: Iterable[tuple[str, str, bool]], tables: set[str]) -> set[tuple[str, str, bool]]:
    return {(table, column, nullable) for table, column, nullable in shape if table not in tables}


async def test_both_databases_have_the_same_tables_and_columns(session: Session, tmp_path: Path) -> None:
    on_sqlite, _ = sqlite_shape(tmp_path / "tempa.db")
    on_postgres = {(row[0], row[1], row[2] == "YES") for row in await session.rows(COLUMNS)}

    assert len(on_sqlite) > 100
    assert {table for table, _, _ in on_sqlite} - {table for table, _, _ in on_postgres} == ONLY_SQLITE
    assert {table for table, _, _ in on_postgres} - {table for table, _, _ in on_sqlite} == ONLY_POSTGRES
    assert besides(on_postgres, ONLY_POSTGRES) == besides(on_sqlite, ONLY_SQLITE)


async def test_both_databases_have_the_same_indexes(session: Session, tmp_path: Path) -> None:
    """The named ones: those of `primary key` and `unique` are compared below."""
    _, on_sqlite = sqlite_shape(tmp_path / "tempa.db")
    on_postgres = {
        row["indexname"]: (row["tablename"], "CREATE UNIQUE" in row["indexdef"], index_body(row["indexdef"]))
        for row in await session.rows(INDEXES)
        if not re.search(r"_(pkey|key)$", row["indexname"])
    }

    assert len(on_sqlite) > 15
    assert on_postgres.keys() == on_sqlite.keys()
    for name, (table, unique, body) in on_sqlite.items():
        expected = body.replace(" desc", "") if name in ANY_DIRECTION_ON_POSTGRES else body
        expected = expected.replace(" where", " number where") if name in NUMBER_ON_POSTGRES else expected
        assert on_postgres[name] == (table, unique or name in UNIQUE_ON_POSTGRES, expected), name


async def test_both_databases_hold_the_same_things_unique(session: Session, tmp_path: Path) -> None:
    """Primary keys and unique constraints, by table and columns."""
    prepare(tmp_path / "tempa.db")
    with closing(sqlite3.connect(tmp_path / "tempa.db")) as connection:
        on_sqlite = set(connection.execute(UNIQUE_ON_SQLITE)) | set(connection.execute(NUMBERS_ON_SQLITE))
    on_postgres = {tuple(row) for row in await session.rows(UNIQUE)}

    assert len(on_sqlite) > 15
    assert {pair for pair in on_postgres if pair[0] not in ONLY_POSTGRES} == {
        pair for pair in on_sqlite if pair[0] not in ONLY_SQLITE
    }
