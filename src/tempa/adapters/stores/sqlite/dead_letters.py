"""Deliveries from the people's side: listed, looked into, driven again, let go, pruned."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import attempt_from, dead_group_from, delivery_from, encode
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.line import rejoin
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.clock import to_ms
from tempa.core.work import DELIVERIES
from tempa.webhooks.model import DeadFilter

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from tempa.webhooks.model import Attempt, DeadGroup, Delivery, DeliveryStatus

# A transaction holds up every admission behind it; this many letters take 15 to 18 ms (2 cores, measured).
LETTERS_PER_TRANSACTION = 1000

_Letter = tuple[int, int]  # its number, and its endpoint's


class DeadLettersPart(Access):
    """`WebhookStore`: what people see of deliveries, and what they do about the dead ones."""

    async def deliveries(
        self,
        account: str,
        *,
        status: DeliveryStatus | None,
        job_id: str | None,
        endpoint_id: str | None,
        limit: int,
        before: str | None,
    ) -> list[Delivery]:
        """Newest first, from the one made before `before`."""
        conditions = {"status": status, "job_id": job_id, "endpoint_id": endpoint_id, "before": before}
        return await self._read(
            lambda connection: [
                delivery_from(row)
                for row in SQL.list_deliveries(connection, account=account, limit=limit, **conditions)
            ]
        )

    async def delivery(self, account: str, delivery_id: str) -> tuple[Delivery, list[Attempt]] | None:
        """One delivery with all its attempts."""

        def query(connection: sqlite3.Connection) -> tuple[Delivery, list[Attempt]] | None:
            row = SQL.delivery_of_account(connection, account=account, delivery_id=delivery_id)
            if row is None:
                return None
            attempts = SQL.delivery_attempts(connection, delivery_number=row["number"])
            return delivery_from(row), [attempt_from(attempt) for attempt in attempts]

        return await self._read(query)

    async def dead_groups(self, account: str) -> list[DeadGroup]:
        """Dead letters by URL and reason."""
        return await self._read(
            lambda connection: [dead_group_from(row) for row in SQL.dead_groups(connection, account=account)]
        )

    async def count_dead(self, account: str, which: DeadFilter) -> int:
        """How many dead letters are meant."""
        return await self._read(lambda connection: len(_letters(connection, account, which)))

    async def dead_letters(
        self, account: str, which: DeadFilter, limit: int, before: str | None
    ) -> list[Delivery]:
        """The dead letters that are meant, newest first, from the one made before `before`."""
        if _means_none(which):
            return []
        conditions = {**_conditions(account, which), "before": before}
        return await self._read(
            lambda connection: [
                delivery_from(row) for row in SQL.dead_letters(connection, limit=limit, **conditions)
            ]
        )

    async def redrive(self, account: str, which: DeadFilter, spacing_seconds: float) -> int:
        """A new round for each, oldest first, one every `spacing_seconds`: no flood after an outage."""
        start = self._now()

        def transaction(connection: sqlite3.Connection, letters: Sequence[_Letter], first: int) -> Done[int]:
            rows = [
                {"number": number, "next_at": start + round(place * spacing_seconds * 1000)}
                for place, (number, _) in enumerate(letters, start=first)
            ]
            driven = SQL.redrive(connection, rows)
            rejoin(connection, (endpoint_number for _, endpoint_number in letters), self._now())
            return Done(driven, (DELIVERIES,) if driven else ())

        return await self._in_slices(account, which, transaction)

    async def discard(self, account: str, which: DeadFilter, reason: str) -> int:
        """Let them go, for a reason."""

        def transaction(
            connection: sqlite3.Connection,
            letters: Sequence[_Letter],
            first: int,  # noqa: ARG001 - only a re-drive is paced
        ) -> Done[int]:
            now = self._now()
            rows = [{"number": number, "now": now, "reason": reason} for number, _ in letters]
            return Done(SQL.discard(connection, rows))

        return await self._in_slices(account, which, transaction)

    async def delivery_counts(self) -> Mapping[str, int]:
        """Deliveries by status."""
        return await self._read(
            lambda connection: {row["status"]: row["deliveries"] for row in SQL.count_deliveries(connection)}
        )

    async def prune_deliveries(self, before: datetime, limit: int) -> int:
        """Delete up to `limit` that finished before then, the earliest first, and URLs left without any."""
        return await self._write(lambda connection: _prune(connection, to_ms(before), limit, self._now()))

    async def _in_slices(self, account: str, which: DeadFilter, transaction: Callable[..., Done[int]]) -> int:
        """Run `transaction` over the letters that are meant, so many at a time; others write in between.

        A letter that is no longer dead when its slice comes is left alone, and not counted.
        """
        letters = await self._read(lambda connection: _letters(connection, account, which))
        done = 0
        for first in range(0, len(letters), LETTERS_PER_TRANSACTION):
            part = letters[first : first + LETTERS_PER_TRANSACTION]
            done += await self._write(partial(transaction, letters=part, first=first))
        return done


def _means_none(which: DeadFilter) -> bool:
    """An empty filter is a slip, not a wish to touch everything."""
    return which == DeadFilter()


def _conditions(account: str, which: DeadFilter) -> dict[str, Any]:
    return {
        "account": account,
        "ids": encode(which.delivery_ids) if which.delivery_ids else None,
        "group": which.group,
        "endpoint_id": which.endpoint_id,
        "since": None if which.since is None else to_ms(which.since),
    }


def _letters(connection: sqlite3.Connection, account: str, which: DeadFilter) -> list[_Letter]:
    if _means_none(which):
        return []
    rows = SQL.dead_numbers(connection, **_conditions(account, which))
    return [(row["number"], row["endpoint_number"]) for row in rows]


def _prune(connection: sqlite3.Connection, before: int, limit: int, now: int) -> Done[int]:
    endpoints = [
        row["endpoint_number"] for row in SQL.prune_deliveries(connection, before=before, limit=limit)
    ]
    for number in set(endpoints):
        SQL.prune_endpoint(connection, endpoint_number=number, now=now)
    return Done(len(endpoints))
