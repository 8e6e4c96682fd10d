"""The life of a delivery: planned from an event, attempted, delivered or dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.sql import claimed_from, encode, event_from, message_text
from tempa.core.ids import new_id
from tempa.core.work import DELIVERIES, FEED
from tempa.webhooks.model import DeliveryStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.core.events import Event
    from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, NewDelivery, Next, Planned

IN_FLIGHT_MAX = 4  # attempts to one endpoint at a time: a slow receiver holds no more of ours than these

_FINISHED = {DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELED}


class DeliveriesPart(Access):
    """`WebhookStore`: fan-out and attempts."""

    async def unplanned(self, limit: int) -> list[Event]:
        """Events that fan-out has not seen yet, oldest first."""
        return await self._read(_unplanned, limit)

    async def fan_out(self, planned: Sequence[Planned]) -> int:
        """Place these events in the feed and make their deliveries; returns how many are new."""
        return await self._write(_fan_out, planned)

    async def claim_deliveries(self, limit: int, lease_seconds: float) -> list[ClaimedDelivery]:
        """Take up to `limit` that are due, in turn across endpoints; their attempts are on record."""
        return await self._write(_claim, limit, lease_seconds)

    async def settle_delivery(self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> bool:
        """Close the attempt. False: the delivery was claimed again or is settled; nothing was written."""
        return await self._write(_settle, claimed, outcome, then)

    async def void_delivery_leases(self) -> int:
        """At start: what the dead process had in flight is pending again."""
        return await self._write(_free, expired_only=False)

    async def free_expired_deliveries(self) -> int:
        """Deliveries whose lease ran out are pending again."""
        return await self._write(_free, expired_only=True)


def _unplanned(limit: int) -> Flow[list[Event]]:
    rows = yield ASK.unplanned(limit=limit)
    return [event_from(row) for row in rows]


def _fan_out(planned: Sequence[Planned]) -> Flow[Done[int]]:
    yield ASK.lock_feed()
    fresh = []
    for plan in planned:
        number = yield ASK.unplanned_number(event_id=plan.event_id)
        if number is not None:
            fresh.append((number, plan))
    if not fresh:
        return Done(0)
    fresh.sort(key=lambda pair: pair[0])  # the order in which they were written, however they were given
    moment = yield MOMENT
    last = yield ASK.advance_feed(events=len(fresh))
    made = 0
    for position, (number, plan) in enumerate(fresh, start=last - len(fresh) + 1):
        yield ASK.place_event(number=number, position=position)
        for wanted in plan.deliveries:
            made += yield from _insert(number, plan, wanted, moment.now)
    return Done(made, (FEED, DELIVERIES) if made else (FEED,))


def _insert(event_number: int, plan: Planned, wanted: NewDelivery, now: int) -> Flow[int]:
    message = wanted.message
    assert message.id == plan.event_id, "a message tells of the event it was planned for"
    endpoint_number = yield from _endpoint(message.account, wanted.url, now)
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
        yield ASK.insert_endpoint(id=new_id("ep"), account=account, url=url, origin="job", now=now)
        number = yield ASK.endpoint_number(account=account, url=url)
    return int(number)


def _claim(limit: int, lease_seconds: float) -> Flow[Done[list[ClaimedDelivery]]]:
    yield ASK.lock_deliveries()
    moment = yield MOMENT
    due = yield ASK.due_deliveries(now=moment.now, in_flight_max=IN_FLIGHT_MAX, limit=limit)
    lease_until = moment.lease_until(lease_seconds)
    for row in due:
        yield ASK.lease_delivery(number=row["number"], lease_until=lease_until)
        turn = yield ASK.open_delivery_attempt(
            delivery_number=row["number"], attempt=row["attempts"] + 1, started_at=moment.now
        )
        yield ASK.take_turn(endpoint_number=row["endpoint_number"], turn=turn)
    return Done([claimed_from(row) for row in due])


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
    return Done(answer=True, topics=(DELIVERIES,))


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
    return Done(freed, (DELIVERIES,) if freed else ())
