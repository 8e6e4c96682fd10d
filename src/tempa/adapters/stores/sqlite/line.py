"""The line in which endpoints wait for a claim: who stands in it, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.adapters.stores.sqlite.access import SQL

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

IN_FLIGHT_MAX = 4  # attempts to one endpoint at a time: a slow receiver holds no more of ours than these


def rejoin(connection: sqlite3.Connection, endpoint_numbers: Iterable[int], now: int) -> None:
    """Reckon anew when each may be claimed from: in every transaction that touches its deliveries."""
    rows = [
        {"endpoint_number": number, "now": now, "in_flight_max": IN_FLIGHT_MAX}
        for number in sorted(set(endpoint_numbers))
    ]
    SQL.rejoin_line(connection, rows)
