"""A database from before operators' acts were kept: late payments find a price, and proofs their terms."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from tempa.adapters.stores.migrations import due, statements
from tempa.adapters.stores.sqlite.connections import open_writer
from tempa.adapters.stores.sqlite.schema import migrate

BEFORE = 3


def test_instances_that_are_older_keep_their_price_and_suspension(tmp_path: Path) -> None:
    with closing(open_writer(tmp_path / "tempa.db")) as connection:
        for script in due("sqlite", 0)[:BEFORE]:
            for statement in statements(script.text):
                connection.execute(statement)
        for row in (("gpu_b", "[1]", 20, None), ("gpu_a", "[2]", 10, 33)):
            connection.execute(
                "insert into gpu_instance (id, name, prices, created_at, suspended_at) "
                "values (?, 'H200', ?, ?, ?)",
                row,
            )

        migrate(connection, BEFORE)

        acts = connection.execute(
            "select gpu_instance_id, kind, prices, at from instance_act order by number"
        )
        assert [tuple(act) for act in acts] == [
            ("gpu_a", "added", "[2]", 10),
            ("gpu_b", "added", "[1]", 20),
            ("gpu_a", "suspended", None, 33),
        ]
