"""What came of attempts: written in batches, each fenced by itself, and noted of their endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tempa.adapters.stores.commands.batches import Batches
from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.health import death, note_attempt, note_elsewhere
from tempa.adapters.stores.commands.notices import tell
from tempa.adapters.stores.sql import encode
from tempa.core.crash import crash_point
from tempa.core.work import DELIVERIES, EVENTS
from tempa.webhooks.model import AttemptOutcome, ClaimedDelivery, DeliveryStatus, Next
from tempa.webhooks.notices import chained, may_die_aloud
from tempa.webhooks.ports import Settled
from tempa.webhooks.room import Standing, standing_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.notices import Notice

DOUBTED_MAX = 500  # endpoints in one transaction: 2 ms; the next slow one goes on

_FINISHED = {DeliveryStatus.DELIVERED, DeliveryStatus.DEAD, DeliveryStatus.CANCELED}


class Settlement(NamedTuple):
    """What came of a delivery's attempt, and what follows from it."""

    claimed: ClaimedDelivery
    outcome: AttemptOutcome
    then: Next


class OutcomesPart(Access):
    """`WebhookStore.settle_delivery`. An adapter that closes waits for `_outcomes` first."""

    def __init__(self) -> None:
        super().__init__()
        self._outcomes: Batches[Settlement, Settled | None] = Batches(
            self._write_outcomes, lambda settlement: settlement.claimed.id
        )

    async def settle_delivery(
        self, claimed: ClaimedDelivery, outcome: AttemptOutcome, then: Next
    ) -> Settled | None:
        """Close the attempt, and note what it means to its endpoint.

        None: the delivery was claimed again or is settled; nothing was written.
        """
        return await self._outcomes.do(Settlement(claimed, outcome, then))

    async def _write_outcomes(self, batch: Sequence[Settlement]) -> list[Settled | None]:
        return await self._write(settle_all, batch)


def settle_all(batch: Sequence[Settlement]) -> Flow[Done[list[Settled | None]]]:
    """All or none, but for what is fenced off. Locked in one order: no two batches wait for each other."""
    moment = yield MOMENT
    rows = yield ASK.end_delivery_attempts([_ending(settlement, moment.now) for settlement in batch])
    ended = {row["delivery_id"]: row for row in rows}
    written = [settlement for settlement in batch if settlement.claimed.id in ended]
    if not written:
        return Done([None] * len(batch))
    yield ASK.close_delivery_attempts([_closing(one, ended[one.claimed.id]["number"]) for one in written])
    numbers = sorted({row["endpoint_number"] for row in rows})
    locked = yield ASK.endpoints_for_update(numbers=encode(numbers))
    endpoints = {endpoint["number"]: endpoint for endpoint in locked}
    settled: dict[str, Settled] = {}
    notices: list[tuple[str, Notice]] = []
    for one in written:
        change = yield from _note(one, ended[one.claimed.id], endpoints, notices, moment.now)
        settled[one.claimed.id] = change
    yield from tell(notices, moment.now)
    yield ASK.rejoin_line([{"endpoint_number": number, "now": moment.now} for number in numbers])
    crash_point("delivery.settle_in_commit")
    topics = (DELIVERIES, EVENTS) if notices else (DELIVERIES,)
    return Done([settled.get(settlement.claimed.id) for settlement in batch], topics)


def _note(
    settlement: Settlement,
    ended: Any,
    endpoints: dict[int, Any],
    notices: list[tuple[str, Notice]],
    now: int,
) -> Flow[Settled]:
    """What one attempt means to its endpoint, which is left in `endpoints` as the next one finds it."""
    claimed, outcome, then = settlement
    endpoint = endpoints[ended["endpoint_number"]]
    if claimed.url != endpoint["url"]:
        noted = yield from note_elsewhere(endpoint, then)
    else:
        noted = yield from note_attempt(endpoint, ended, outcome, then, now)
        if standing_after(outcome.duration_ms) is Standing.SLOW:
            yield ASK.doubt_untried(endpoint_number=endpoint["number"], limit=DOUBTED_MAX)
    endpoints[ended["endpoint_number"]] = noted.endpoint
    told = chained(noted.notices, claimed.message)
    if may_die_aloud(claimed.message.type):
        told += death(endpoint, claimed, then, healed=bool(ended["healed"]))
    notices += [(endpoint["account"], notice) for notice in told]
    return Settled(noted.change)


def _ending(settlement: Settlement, now: int) -> dict[str, Any]:
    """What is written of a delivery."""
    then = settlement.then
    again = then.status is DeliveryStatus.PENDING
    return {
        "delivery_id": settlement.claimed.id,
        "attempt": settlement.claimed.attempt,
        "status": then.status,
        "next_at": now + round(then.delay_seconds * 1000) if again else None,
        "retries": int(again),
        "finished_at": now if then.status in _FINISHED else None,
        "reason": then.reason,
    }


def _closing(settlement: Settlement, delivery_number: int) -> dict[str, Any]:
    """What is written of its attempt."""
    outcome = settlement.outcome
    return {
        "delivery_number": delivery_number,
        "attempt": settlement.claimed.attempt,
        "outcome": outcome.outcome,
        "http_status": outcome.http_status,
        "error": outcome.error,
        "duration_ms": outcome.duration_ms,
        "timings": encode(outcome.timings),
        "body_sha256": outcome.body_sha256,
        "response_excerpt": outcome.response_excerpt,
        "hint": outcome.hint,
    }
