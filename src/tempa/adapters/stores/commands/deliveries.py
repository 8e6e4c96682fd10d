"""The life of a delivery: planned from an event, attempted, delivered or dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.line import IN_FLIGHT_MAX, rejoin
from tempa.adapters.stores.sql import claimed_from, encode, event_from, message_text
from tempa.core.crash import crash_point
from tempa.core.ids import new_id
from tempa.core.work import DELIVERIES, FEED
from tempa.webhooks.model import DeliveryClaim, DeliveryStatus
from tempa.webhooks.room import Standing, host_of, standing_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.core.events import Event
    from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, NewDelivery, Next, Planned
    from tempa.webhooks.room import Room

DOUBTED_MAX = 500  # endpoints in one transaction: 2 ms; the next slow one goes on

_FINISHED = {DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELED}


class DeliveriesPart(Access):
    """`WebhookStore`: fan-out and attempts."""

    async def unplanned(self, limit: int) -> list[Event]:
        """Events that fan-out has not seen yet, oldest first."""
        return await self._read(_unplanned, self._placed_up_to(), limit)

    async def fan_out(self, planned: Sequence[Planned]) -> int:
        """Place these events in the feed and make their deliveries; returns how many are new."""
        made, last = await self._write(_fan_out, planned)
        self._note_placed(last)
        return made

    def _placed_up_to(self) -> int:
        """The number of an event that none before is worth looking at; an adapter may know one."""
        return 0

    def _note_placed(self, number: int) -> None:
        """Events up to this one have their positions, but for such as come late."""

    async def claim_deliveries(self, room: Room, limit: int, lease_seconds: float) -> DeliveryClaim:
        """Take up to `limit` that are due and have room, in turn; their attempts are on record."""
        # A copy, made here: the deliverer's own goes on changing while the transaction runs.
        return await self._write(_claim, room.copy(), limit, lease_seconds)

    async def settle_delivery(self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> bool:
        """Close the attempt. False: the delivery was claimed again or is settled; nothing was written."""
        return await self._write(_settle, claimed, outcome, then)

    async def void_delivery_leases(self) -> int:
        """At start: what the dead process had in flight is pending again."""
        return await self._write(_free, expired_only=False)

    async def free_expired_deliveries(self) -> int:
        """Deliveries whose lease ran out are pending again."""
        return await self._write(_free, expired_only=True)


def _unplanned(after: int, limit: int) -> Flow[list[Event]]:
    rows = yield ASK.unplanned(after=after, limit=limit)
    return [event_from(row) for row in rows]


def _fan_out(planned: Sequence[Planned]) -> Flow[Done[tuple[int, int]]]:
    yield ASK.lock_feed()
    fresh = []
    for plan in planned:
        number = yield ASK.unplanned_number(event_id=plan.event_id)
        if number is not None:
            fresh.append((number, plan))
    if not fresh:
        return Done((0, 0))
    fresh.sort(key=lambda pair: pair[0])  # the order in which they were written, however they were given
    moment = yield MOMENT
    last = yield ASK.advance_feed(events=len(fresh))
    made = 0
    touched: set[int] = set()
    for position, (number, plan) in enumerate(fresh, start=last - len(fresh) + 1):
        yield ASK.place_event(number=number, position=position)
        for wanted in plan.deliveries:
            endpoint_number = yield from _endpoint(wanted.message.account, wanted.url, moment.now)
            made += yield from _insert(number, endpoint_number, plan, wanted, moment.now)
            touched.add(endpoint_number)
    yield from rejoin(touched, moment.now)
    crash_point("fan_out.in_commit")
    return Done((made, fresh[-1][0]), (FEED, DELIVERIES) if made else (FEED,))


def _insert(
    event_number: int, endpoint_number: int, plan: Planned, wanted: NewDelivery, now: int
) -> Flow[int]:
    message = wanted.message
    assert message.id == plan.event_id, "a message tells of the event it was planned for"
    inserted: int = yield ASK.insert_delivery(
        id=wanted.id,
        account=message.account,
        event_number=event_number,
        endpoint_number=endpoint_number,
        job_id=message.job_id,
        type=message.type,
        now=now,
        message=message_text(message),
    )
    return inserted


def _endpoint(account: str, url: str, now: int) -> Flow[int]:
    number = yield ASK.endpoint_number(account=account, url=url)
    if number is None:
        fresh = {"id": new_id("ep"), "account": account, "url": url, "host": host_of(url), "origin": "job"}
        yield ASK.insert_endpoint(**fresh, now=now)
        number = yield ASK.endpoint_number(account=account, url=url)
    return int(number)


def _claim(room: Room, limit: int, lease_seconds: float) -> Flow[Done[DeliveryClaim]]:
    yield ASK.lock_deliveries()
    moment = yield MOMENT
    chosen = yield from _admitted(room, limit, moment.now)
    endpoints = sorted({row["endpoint_number"] for row in chosen})
    yield ASK.lock_endpoints(numbers=encode(endpoints))  # in the order in which all take them
    taken = []
    for row in chosen:
        leased = yield ASK.lease_delivery(number=row["number"], lease_until=moment.lease_until(lease_seconds))
        if leased is not None:
            yield from _begin(row, leased["attempts"], moment.now)
            taken.append(claimed_from(leased))
    yield from rejoin(endpoints, moment.now)
    if taken:
        crash_point("delivery.claim_in_commit")
    next_at = yield ASK.next_in_line(now=moment.now)
    return Done(DeliveryClaim(tuple(taken), None if next_at is None else (next_at - moment.now) / 1000))


def _begin(row: Any, attempt: int, now: int) -> Flow[None]:
    turn = yield ASK.open_delivery_attempt(delivery_number=row["number"], attempt=attempt, started_at=now)
    yield ASK.take_turn(endpoint_number=row["endpoint_number"], turn=turn)


def _admitted(room: Room, limit: int, now: int) -> Flow[list[Any]]:
    """Of what is due, the first `limit` that the room admits, each taking its slot in it."""
    full = {
        "full_accounts": encode([f"{standing}/{account}" for standing, account in room.full_accounts()]),
        "full_hosts": encode(["/".join(map(str, key)) for key in room.full_hosts()]),
    }
    due = yield ASK.due_deliveries(now=now, in_flight_max=IN_FLIGHT_MAX, limit=limit, **full)
    admitted: list[Any] = []
    for row in due:
        if len(admitted) < limit and room.admits(row["account"], row["host"], Standing(row["standing"])):
            room.enter(row["account"], row["host"])
            admitted.append(row)
    return admitted


def _settle(claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> Flow[Done[bool]]:
    moment = yield MOMENT
    row = yield ASK.end_delivery_attempt(
        delivery_id=claimed.id, attempt=claimed.attempt, **_columns(then, moment.now)
    )
    if row is None:
        return Done(answer=False)
    yield ASK.close_delivery_attempt(
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
        held_until = moment.now + round(then.hold_seconds * 1000)
        yield ASK.hold_endpoint(endpoint_number=row["endpoint_number"], held_until=held_until)
    yield from _note_standing(row["endpoint_number"], standing_after(outcome.duration_ms))
    yield from rejoin([row["endpoint_number"]], moment.now)
    crash_point("delivery.settle_in_commit")
    return Done(answer=True, topics=(DELIVERIES,))


def _note_standing(endpoint_number: int, standing: Standing) -> Flow[None]:
    yield ASK.note_standing(endpoint_number=endpoint_number, standing=standing)
    if standing is Standing.SLOW:
        yield ASK.doubt_untried(endpoint_number=endpoint_number, limit=DOUBTED_MAX)


def _columns(then: Next, now: int) -> dict[str, Any]:
    again = then.status is DeliveryStatus.PENDING
    return {
        "status": then.status,
        "next_at": now + round(then.delay_seconds * 1000) if again else None,
        "retries": int(again),
        "finished_at": now if then.status in _FINISHED else None,
        "reason": then.reason,
    }


def _free(*, expired_only: bool) -> Flow[Done[int]]:
    moment = yield MOMENT
    freed = yield ASK.free_deliveries(lapsed_by=moment.tick if expired_only else None)
    yield from rejoin((row["endpoint_number"] for row in freed), moment.now)
    return Done(len(freed), (DELIVERIES,) if freed else ())
