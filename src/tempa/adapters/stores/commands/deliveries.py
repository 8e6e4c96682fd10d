"""A delivery's way out of the house: planned from an event, then claimed. What comes of it: outcomes.py."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.gate import Gate, permitted
from tempa.adapters.stores.commands.goals import goal_of, targets
from tempa.adapters.stores.commands.line import rejoin
from tempa.adapters.stores.sql import claimed_from, encode, event_from, message_text
from tempa.core.crash import crash_point
from tempa.core.work import DELIVERIES, FEED
from tempa.webhooks.model import DeliveryClaim
from tempa.webhooks.room import Standing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow, Moment
    from tempa.adapters.stores.commands.goals import Goal
    from tempa.core.events import Event
    from tempa.webhooks.model import NewDelivery, Planned
    from tempa.webhooks.room import Room

OFFERED_MAX = 4  # of one endpoint to one claim; where more may be in flight, the next claim takes more


class DeliveriesPart(Access):
    """`WebhookStore`: fan-out, claims and leases."""

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
    let_in = [row for row in chosen if _enters(gates, row)]
    leased = yield from _lease(let_in, gates, moment, lease_seconds)
    yield from rejoin(numbers, moment.now)
    if leased:
        crash_point("delivery.claim_in_commit")
    taken = [claimed_from(row, gates[row["endpoint_number"]].endpoint) for row in leased]
    next_at = yield ASK.next_in_line(now=moment.now)
    return Done(DeliveryClaim(tuple(taken), None if next_at is None else (next_at - moment.now) / 1000))


def _enters(gates: Mapping[int, Gate], row: Any) -> bool:
    gate = gates.get(row["endpoint_number"])
    if gate is None or not gate.admits(row["in_flight"]):
        return False
    gate.enter()
    return True


def _lease(
    let_in: Sequence[Any], gates: Mapping[int, Gate], moment: Moment, lease_seconds: float
) -> Flow[list[Any]]:
    """Those that are still pending, in the order given, each with its attempt on record."""
    numbers = encode([row["number"] for row in let_in])
    rows = yield ASK.lease_deliveries(numbers=numbers, lease_until=moment.lease_until(lease_seconds))
    by_number = {row["number"]: row for row in rows}
    for row in let_in:
        if row["number"] not in by_number:
            gates[row["endpoint_number"]].leave()
    leased = [by_number[row["number"]] for row in let_in if row["number"] in by_number]
    if leased:
        yield from _begin(leased, gates, moment.now)
    return leased


def _begin(leased: Sequence[Any], gates: Mapping[int, Gate], now: int) -> Flow[None]:
    opened = yield ASK.open_delivery_attempts(
        [{"delivery_number": row["number"], "attempt": row["attempts"], "started_at": now} for row in leased]
    )
    attempts = {row["delivery_number"]: row["number"] for row in opened}
    turns = {row["endpoint_number"]: attempts[row["number"]] for row in leased}  # of each, its latest
    yield ASK.take_turns(
        [
            {"endpoint_number": number, "turn": turn, "paced_at": gates[number].paced_at}
            for number, turn in sorted(turns.items())
        ]
    )


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


def _free(*, expired_only: bool) -> Flow[Done[int]]:
    moment = yield MOMENT
    freed = yield ASK.free_deliveries(lapsed_by=moment.tick if expired_only else None)
    yield from rejoin((row["endpoint_number"] for row in freed), moment.now)
    return Done(len(freed), (DELIVERIES,) if freed else ())
