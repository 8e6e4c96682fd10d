"""The life of a delivery: planned from an event, attempted, delivered or dead."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.gate import Gate, permitted
from tempa.adapters.stores.commands.goals import goal_of, targets
from tempa.adapters.stores.commands.health import death, note_attempt
from tempa.adapters.stores.commands.line import rejoin
from tempa.adapters.stores.commands.notices import tell
from tempa.adapters.stores.sql import claimed_from, encode, event_from, message_text
from tempa.core.crash import crash_point
from tempa.core.work import DELIVERIES, EVENTS, FEED
from tempa.webhooks.model import DeliveryClaim, DeliveryStatus
from tempa.webhooks.notices import may_be_told_of
from tempa.webhooks.ports import Settled
from tempa.webhooks.room import Standing, standing_after

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.adapters.stores.commands.goals import Goal
    from tempa.core.events import Event
    from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, NewDelivery, Next, Planned
    from tempa.webhooks.room import Room

OFFERED_MAX = 4  # of one endpoint to one claim; where more may be in flight, the next claim takes more
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

    async def settle_delivery(
        self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next
    ) -> Settled | None:
        """Close the attempt, and note what it means to its endpoint.

        None: the delivery was claimed again or is settled; nothing was written.
        """
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
    goals = yield from targets([plan for _, plan in fresh], moment.now)
    last = yield ASK.advance_feed(events=len(fresh))
    made = 0
    for position, (number, plan) in enumerate(fresh, start=last - len(fresh) + 1):
        yield ASK.place_event(number=number, position=position)
        made += yield from _insert_all(number, plan, goals, moment.now)
    yield from rejoin(goals.values(), moment.now)
    crash_point("fan_out.in_commit")
    return Done((made, fresh[-1][0]), (FEED, DELIVERIES) if made else (FEED,))


def _insert_all(number: int, plan: Planned, goals: Mapping[Goal, int], now: int) -> Flow[int]:
    made = 0
    for wanted in plan.deliveries:
        endpoint_number = goals.get(goal_of(wanted))
        if endpoint_number is not None:  # else it was removed since the event was planned
            made += yield from _insert(number, endpoint_number, plan, wanted, now)
    return made


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


def _claim(room: Room, limit: int, lease_seconds: float) -> Flow[Done[DeliveryClaim]]:
    yield ASK.lock_deliveries()
    moment = yield MOMENT
    chosen = yield from _admitted(room, limit, moment.now)
    numbers = sorted({row["endpoint_number"] for row in chosen})
    # In the order in which all take them; as they are then, which may be otherwise than they were offered.
    locked = yield ASK.endpoints_for_update(numbers=encode(numbers))
    gates = {endpoint["number"]: Gate(endpoint, moment.now) for endpoint in locked}
    taken = []
    for row in chosen:
        gate = gates.get(row["endpoint_number"])
        if gate is not None and gate.admits(row["in_flight"]):
            leased = yield ASK.lease_delivery(
                number=row["number"], lease_until=moment.lease_until(lease_seconds)
            )
            if leased is not None:
                gate.enter()
                yield from _begin(row, leased["attempts"], gate, moment.now)
                taken.append(claimed_from(leased, gate.endpoint))
    yield from rejoin(numbers, moment.now)
    if taken:
        crash_point("delivery.claim_in_commit")
    next_at = yield ASK.next_in_line(now=moment.now)
    return Done(DeliveryClaim(tuple(taken), None if next_at is None else (next_at - moment.now) / 1000))


def _begin(row: Any, attempt: int, gate: Gate, now: int) -> Flow[None]:
    turn = yield ASK.open_delivery_attempt(delivery_number=row["number"], attempt=attempt, started_at=now)
    yield ASK.take_turn(endpoint_number=row["endpoint_number"], turn=turn, paced_at=gate.paced_at)


def _admitted(room: Room, limit: int, now: int) -> Flow[list[Any]]:
    """Of what is due, the first `limit` that the room and its endpoint's pace admit, each taking its slot."""
    full = {
        "full_accounts": encode([f"{standing}/{account}" for standing, account in room.full_accounts()]),
        "full_hosts": encode(["/".join(map(str, key)) for key in room.full_hosts()]),
    }
    due = yield ASK.due_deliveries(now=now, offered_max=OFFERED_MAX, limit=limit, **full)
    admitted: list[Any] = []
    paced: Counter[int] = Counter()
    for row in due:
        if len(admitted) == limit:
            break
        may_start = permitted(row, now)
        has_pace = may_start is None or paced[row["endpoint_number"]] < may_start
        if has_pace and room.admits(row["account"], row["host"], Standing(row["standing"])):
            room.enter(row["account"], row["host"])
            paced[row["endpoint_number"]] += 1
            admitted.append(row)
    return admitted


def _settle(claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next) -> Flow[Done[Settled | None]]:
    moment = yield MOMENT
    ended = yield ASK.end_delivery_attempt(
        delivery_id=claimed.id, attempt=claimed.attempt, **_columns(then, moment.now)
    )
    if ended is None:
        return Done(None)
    yield ASK.close_delivery_attempt(
        delivery_number=ended["number"],
        attempt=claimed.attempt,
        outcome=outcome.outcome,
        http_status=outcome.http_status,
        error=outcome.error,
        duration_ms=outcome.duration_ms,
        timings=encode(outcome.timings),
        body_sha256=outcome.body_sha256,
        response_excerpt=outcome.response_excerpt,
    )
    endpoint = yield ASK.endpoint_for_update(endpoint_number=ended["endpoint_number"])
    change, notices = yield from note_attempt(endpoint, ended, outcome, then, moment.now)
    if standing_after(outcome.duration_ms) is Standing.SLOW:
        yield ASK.doubt_untried(endpoint_number=endpoint["number"], limit=DOUBTED_MAX)
    notices += death(endpoint, claimed, then, healed=bool(ended["healed"]))
    if may_be_told_of(claimed.message.type):
        yield from tell([(endpoint["account"], notice) for notice in notices], moment.now)
    yield ASK.rejoin_line([{"endpoint_number": endpoint["number"], "now": moment.now}])
    crash_point("delivery.settle_in_commit")
    return Done(Settled(change), (DELIVERIES, EVENTS) if notices else (DELIVERIES,))


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
