from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tempa.adapters.stores.migrations import SCHEMA_VERSION, due, scripts, statements
from tempa.adapters.stores.migrations.runner import due_revisions

TRIGGER = """create trigger t before update on a begin
    select raise(abort, 'one; two');
    select 2;
end;
"""


def test_a_script_is_cut_between_statements_and_nowhere_else() -> None:
    script = (
        f"-- first; really\ncreate table a (x text default ';');\n\n{TRIGGER}insert into a\nvalues (1);\n"
    )

    parts = list(statements(script))

    assert "".join(parts) == script
    assert [part.strip().splitlines()[-1] for part in parts] == [
        "create table a (x text default ';');",
        "end;",
        "values (1);",
    ]


def test_a_script_without_an_end_is_a_slip() -> None:
    with pytest.raises(AssertionError, match="no end"):
        list(statements("create table a (x text)\n"))


def test_the_statements_are_what_sqlite_itself_takes_from_the_script() -> None:
    (script,) = [script for script in scripts("sqlite") if script.version == 1]
    whole, in_parts = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    whole.executescript(script.text)
    for statement in statements(script.text):
        in_parts.execute(statement)

    tables = [
        list(db.execute("select name, sql from sqlite_schema order by name")) for db in (whole, in_parts)
    ]
    whole.close()
    in_parts.close()
    assert tables[0] == tables[1]


def test_every_version_has_a_script_and_a_revision() -> None:
    versions = list(range(1, SCHEMA_VERSION + 1))

    for dialect in ("sqlite", "postgresql"):
        assert [script.version for script in scripts(dialect)] == versions
    assert [int(revision.revision) for revision in due_revisions(0)] == versions
    assert due_revisions(SCHEMA_VERSION) == []


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_revision_executes_the_script_of_its_database_and_nothing_else(dialect: str) -> None:
    for run, script in zip(due(dialect, 0), scripts(dialect), strict=True):
        assert run.version == script.version
        assert run.text.split() == script.text.split()  # but for the space around it


def test_a_gap_in_the_scripts_is_a_slip(tmp_path: Path) -> None:
    folder = tmp_path / "sql" / "sqlite"
    folder.mkdir(parents=True)
    for name in ("0001_first.sql", "0003_third.sql"):
        (folder / name).write_text("select 1;")

    with pytest.raises(AssertionError, match="gap"):
        scripts("sqlite", tmp_path)
