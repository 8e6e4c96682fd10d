"""The life of a delivery: planned from an event, attempted, delivered or dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.sql import claimed_from, encode, event_from, message_text
from tempa.adapters.stores.sqlite.access import SQL, Access
from tempa.adapters.stores.sqlite.line import IN_FLIGHT_MAX, rejoin
from tempa.adapters.stores.sqlite.writer import Done
from tempa.core.ids import new_id
from tempa.core.work import DELIVERIES, FEED
from tempa.webhooks.model import DeliveryClaim, DeliveryStatus
from tempa.webhooks.room import Standing, host_of, standing_after

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence

    from tempa.core.events import Event
    from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, NewDelivery, Next, Planned
    from tempa.webhooks.room import Room

DOUBTED_MAX = 500  # endpoints in one transaction: 2 ms; the next slow one goes on

_FINISHED = {DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELED}


class DeliveriesPart(Access):
    """`WebhookStore`: fan-out and attempts."""

    async def unplanned(self, limit: int) -> list[Event]:
        """Events that fan-out has not seen yet, oldest first."""
        return await self._read(
            lambda connection: [event_from(row) for row in SQL.unplanned(connection, limit=limit)]
        )

    async def fan_out(self, planned: Sequence[Planned]) -> int:
        """Place these events in the feed and make their deliveries; returns how many are new."""
        return await self._write(lambda connection: _fan_out(connection, planned, self._now()))

    async def claim_deliveries(self, room: Room, limit: int, lease_seconds: float) -> DeliveryClaim:
        """Take up to `limit` that are due and have room, in turn; their attempts are on record."""
        room = room.copy()  # here, not in the writer's thread: the deliverer's own goes on changing

        def transaction(connection: sqlite3.Connection) -> Done[DeliveryClaim]:
            lease_until = self._tick() + round(lease_seconds * 1000)
            return Done(_claim(connection, room, limit, self._now(), lease_until))

        return await self._write(transaction)

    async def settle_delivery(self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> bool:
        """Close the attempt. False: the delivery was claimed again or is settled; nothing was written."""
        return await self._write(lambda connection: _settle(connection, claimed, outcome, then, self._now()))

    async def void_delivery_leases(self) -> int:
        """At start: what the dead process had in flight is pending again."""
        return await self._write(lambda connection: _free(connection, None, self._now()))

    async def free_expired_deliveries(self) -> int:
        """Deliveries whose lease ran out are pending again."""
        return await self._write(lambda connection: _free(connection, self._tick(), self._now()))


def _fan_out(connection: sqlite3.Connection, planned: Sequence[Planned], now: int) -> Done[int]:
    fresh = []
    for plan in planned:
        number = SQL.unplanned_number(connection, event_id=plan.event_id)
        if number is not None:
            fresh.append((number, plan))
    if not fresh:
        return Done(0)
    fresh.sort(key=lambda pair: pair[0])  # the order in which they were written, however they were given
    last = SQL.advance_feed(connection, events=len(fresh))
    made = 0
    for position, (number, plan) in enumerate(fresh, start=last - len(fresh) + 1):
        SQL.place_event(connection, number=number, position=position)
        made += sum(_insert(connection, number, plan, wanted, now) for wanted in plan.deliveries)
    return Done(made, (FEED, DELIVERIES) if made else (FEED,))


def _insert(
    connection: sqlite3.Connection, event_number: int, plan: Planned, wanted: NewDelivery, now: int
) -> int:
    message = wanted.message
    assert message.id == plan.event_id, "a message tells of the event it was planned for"
    endpoint_number = _endpoint(connection, message.account, wanted.url, now)
    inserted: int = SQL.insert_delivery(
        connection,
        id=wanted.id,
        account=message.account,
        event_number=event_number,
        endpoint_number=endpoint_number,
        job_id=message.job_id,
        type=message.type,
        now=now,
        message=message_text(message),
    )
    rejoin(connection, [endpoint_number], now)
    return inserted


def _endpoint(connection: sqlite3.Connection, account: str, url: str, now: int) -> int:
    number = SQL.endpoint_number(connection, account=account, url=url)
    if number is None:
        fresh = {"id": new_id("ep"), "account": account, "url": url, "host": host_of(url), "origin": "job"}
        SQL.insert_endpoint(connection, **fresh, now=now)
        number = SQL.endpoint_number(connection, account=account, url=url)
    return int(number)


def _claim(
    connection: sqlite3.Connection, room: Room, limit: int, now: int, lease_until: int
) -> DeliveryClaim:
    chosen = list(_admitted(connection, room, limit, now))
    taken = []
    for row in chosen:
        leased = SQL.lease_delivery(connection, number=row["number"], lease_until=lease_until)
        turn = SQL.open_delivery_attempt(
            connection, delivery_number=row["number"], attempt=leased["attempts"], started_at=now
        )
        SQL.take_turn(connection, endpoint_number=row["endpoint_number"], turn=turn)
        taken.append(claimed_from(leased))
    rejoin(connection, (row["endpoint_number"] for row in chosen), now)
    next_at = SQL.next_in_line(connection, now=now)
    return DeliveryClaim(tuple(taken), None if next_at is None else (next_at - now) / 1000)


def _admitted(connection: sqlite3.Connection, room: Room, limit: int, now: int) -> Iterator[sqlite3.Row]:
    """Of what is due, the first `limit` that the room admits, each taking its slot in it."""
    full = {
        "full_accounts": encode([f"{standing}/{account}" for standing, account in room.full_accounts()]),
        "full_hosts": encode(["/".join(map(str, key)) for key in room.full_hosts()]),
    }
    for row in SQL.due_deliveries(connection, now=now, in_flight_max=IN_FLIGHT_MAX, limit=limit, **full):
        if limit and room.admits(row["account"], row["host"], Standing(row["standing"])):
            room.enter(row["account"], row["host"])
            limit -= 1
            yield row


def _settle(
    connection: sqlite3.Connection, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next, now: int
) -> Done[bool]:
    row = SQL.end_delivery_attempt(
        connection, delivery_id=claimed.id, attempt=claimed.attempt, **_columns(then, now)
    )
    if row is None:
        return Done(answer=False)
    SQL.close_delivery_attempt(
        connection,
        delivery_number=row["number"],
        attempt=claimed.attempt,
        outcome=outcome.outcome,
        http_status=outcome.http_status,
        error=outcome.error,
        duration_ms=outcome.duration_ms,
        timings=encode(outcome.timings),
        body_sha256=outcome.body_sha256,
        response_excerpt=outcome.response_excerpt,
    )
    if then.hold_seconds > 0:
        held_until = now + round(then.hold_seconds * 1000)
        SQL.hold_endpoint(connection, endpoint_number=row["endpoint_number"], held_until=held_until)
    _note_standing(connection, row["endpoint_number"], standing_after(outcome.duration_ms))
    rejoin(connection, [row["endpoint_number"]], now)
    return Done(answer=True, topics=(DELIVERIES,))


def _note_standing(connection: sqlite3.Connection, endpoint_number: int, standing: Standing) -> None:
    SQL.note_standing(connection, endpoint_number=endpoint_number, standing=standing)
    if standing is Standing.SLOW:
        SQL.doubt_untried(connection, endpoint_number=endpoint_number, limit=DOUBTED_MAX)


def _columns(then: Next, now: int) -> dict[str, Any]:
    again = then.status is DeliveryStatus.PENDING
    return {
        "status": then.status,
        "next_at": now + round(then.delay_seconds * 1000) if again else None,
        "retries": int(again),
        "finished_at": now if then.status in _FINISHED else None,
        "reason": then.reason,
    }


def _free(connection: sqlite3.Connection, lapsed_by: int | None, now: int) -> Done[int]:
    freed = [row["endpoint_number"] for row in SQL.free_deliveries(connection, lapsed_by=lapsed_by)]
    rejoin(connection, freed, now)
    return Done(len(freed), (DELIVERIES,) if freed else ())
