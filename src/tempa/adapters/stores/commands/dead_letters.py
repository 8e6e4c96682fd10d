"""Deliveries from the people's side: listed, looked into, driven again, let go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.line import rejoin
from tempa.adapters.stores.sql import attempt_from, dead_group_from, delivery_from, encode
from tempa.core.clock import to_ms
from tempa.core.crash import crash_point
from tempa.core.work import DELIVERIES
from tempa.webhooks.model import DeadFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Ask, Flow
    from tempa.webhooks.model import Attempt, DeadGroup, Delivery, DeliveryStatus

# A transaction holds up every admission behind it; this many letters take 15 to 18 ms (2 cores, measured).
LETTERS_PER_TRANSACTION = 1000


@dataclass(frozen=True, slots=True)
class _Letter:
    number: int
    endpoint_number: int
    spent: bool  # cannot be sent again


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
        return await self._read(_deliveries, ASK.list_deliveries(account=account, limit=limit, **conditions))

    async def delivery(self, account: str, delivery_id: str) -> tuple[Delivery, list[Attempt]] | None:
        """One delivery with all its attempts."""
        return await self._read(_delivery, account, delivery_id)

    async def dead_groups(self, account: str) -> list[DeadGroup]:
        """Dead letters by URL and reason."""
        return await self._read(_groups, account)

    async def count_dead(self, account: str, which: DeadFilter) -> int:
        """How many dead letters are meant."""
        return len(await self._read(_letters, account, which))

    async def count_spent(self, account: str, which: DeadFilter) -> int:
        """How many of them cannot be sent again: without their payload, or with their endpoint removed."""
        return sum(letter.spent for letter in await self._read(_letters, account, which))

    async def dead_letters(
        self, account: str, which: DeadFilter, limit: int, before: str | None
    ) -> list[Delivery]:
        """The dead letters that are meant, newest first, from the one made before `before`."""
        if _means_none(which):
            return []
        conditions = {**_conditions(account, which), "before": before}
        return await self._read(_deliveries, ASK.dead_letters(limit=limit, **conditions))

    async def redrive(self, account: str, which: DeadFilter, spacing_seconds: float) -> int:
        """A new round for each, oldest first, one every `spacing_seconds`: no flood after an outage.

        Those that cannot be sent again stay as they are.
        """
        start = await self._read(_now)
        letters = [letter for letter in await self._read(_letters, account, which) if not letter.spent]
        driven = 0
        for first, some in _slices(letters):
            rows = [
                {"number": letter.number, "next_at": start + round(place * spacing_seconds * 1000)}
                for place, letter in enumerate(some, start=first)
            ]
            driven += await self._write(_redrive, rows, {letter.endpoint_number for letter in some})
            crash_point("redrive.slice")
        return driven

    async def discard(self, account: str, which: DeadFilter, reason: str) -> int:
        """Let them go, for a reason."""
        discarded = 0
        for _, some in _slices(await self._read(_letters, account, which)):
            discarded += await self._write(_discard, [letter.number for letter in some], reason)
        return discarded

    async def delivery_counts(self) -> Mapping[str, int]:
        """Deliveries that were not taken, by status."""
        return await self._read(_counts)


def _slices(letters: list[_Letter]) -> Iterator[tuple[int, list[_Letter]]]:
    """So many at a time, with the place of the first; others write between.

    A letter that is no longer dead when its slice comes is left alone, and not counted.
    """
    for first in range(0, len(letters), LETTERS_PER_TRANSACTION):
        yield first, letters[first : first + LETTERS_PER_TRANSACTION]


def _now() -> Flow[int]:
    moment = yield MOMENT
    now: int = moment.now
    return now


def _deliveries(ask: Ask) -> Flow[list[Delivery]]:
    rows = yield ask
    return [delivery_from(row) for row in rows]


def _delivery(account: str, delivery_id: str) -> Flow[tuple[Delivery, list[Attempt]] | None]:
    row = yield ASK.delivery_of_account(account=account, delivery_id=delivery_id)
    if row is None:
        return None
    attempts = yield ASK.delivery_attempts(delivery_number=row["number"])
    return delivery_from(row), [attempt_from(attempt) for attempt in attempts]


def _groups(account: str) -> Flow[list[DeadGroup]]:
    rows = yield ASK.dead_groups(account=account)
    return [dead_group_from(row) for row in rows]


def _counts() -> Flow[dict[str, int]]:
    rows = yield ASK.count_deliveries()
    return {row["status"]: row["deliveries"] for row in rows}


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


def _letters(account: str, which: DeadFilter) -> Flow[list[_Letter]]:
    if _means_none(which):
        return []
    rows = yield ASK.dead_numbers(**_conditions(account, which))
    return [_Letter(row["number"], row["endpoint_number"], bool(row["spent"])) for row in rows]


def _redrive(rows: list[dict[str, int]], endpoints: Collection[int]) -> Flow[Done[int]]:
    """No claim meanwhile, as with healing: no later event of a job may pass one that begins anew."""
    yield ASK.lock_deliveries()
    yield ASK.lock_endpoints(numbers=encode(sorted(endpoints)))  # first, as who heals them does
    driven = yield ASK.redrive(rows)
    moment = yield MOMENT
    yield from rejoin(endpoints, moment.now)
    return Done(driven, (DELIVERIES,) if driven else ())


def _discard(numbers: Sequence[int], reason: str) -> Flow[Done[int]]:
    moment = yield MOMENT
    discarded = yield ASK.discard(
        [{"number": number, "now": moment.now, "reason": reason} for number in numbers]
    )
    return Done(discarded)
