"""Every named query fits the schema; what the commands ask, both databases answer."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores import commands
from tempa.adapters.stores.postgres.access import SQL
from tempa.adapters.stores.sqlite import access as sqlite

if TYPE_CHECKING:
    from tests.integration.postgres.sessions import Session

NAMES = sorted(name for name in SQL.available_queries if not name.endswith("_cursor"))
COMMANDS = sorted(Path(commands.__file__).parent.glob("*.py"))


def asked(path: Path) -> set[str]:
    """The queries that a file of commands asks for."""
    return {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ASK"
    }


async def test_every_query_can_be_prepared(session: Session) -> None:
    refused = {}
    for name in NAMES:
        try:
            await session.connection.prepare(getattr(SQL, name).sql)
        except Exception as error:  # noqa: BLE001 - all that are refused are told at once
            refused[name] = str(error)

    assert len(NAMES) > 70
    assert refused == {}


def test_every_query_says_why_it_is_as_it_is() -> None:
    assert not [name for name in NAMES if not getattr(SQL, name).__doc__]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_both_databases_answer_what_the_commands_ask(path: Path) -> None:
    wanted = asked(path)

    assert wanted - set(SQL.available_queries) == set()
    assert wanted - set(sqlite.SQL.available_queries) - sqlite._ROWS.keys() == set()


def test_the_look_into_the_commands_finds_what_they_ask() -> None:
    assert sum(len(asked(path)) for path in COMMANDS) > 50
