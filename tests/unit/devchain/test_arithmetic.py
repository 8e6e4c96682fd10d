"""The chain's runtime leaves the processor as it found it."""

from __future__ import annotations

import sqlite3

from tempa.testing.devchain import fixtures


def test_numbers_are_numbers_after_programs_have_run() -> None:
    """SQLite reads its numbers as long doubles, by the registers that a program may have left in use."""
    assert len(list(fixtures.cases())) > 40
    connection = sqlite3.connect(":memory:")
    connection.execute("create table rate (per_second real default 1.0 check (per_second > 0))")
    connection.execute("insert into rate values (?)", (200.0,))
    connection.execute("insert into rate default values")
    assert connection.execute("select per_second from rate").fetchall() == [(200.0,), (1.0,)]
    connection.close()
