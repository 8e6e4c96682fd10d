"""Endpoints that were down: what waited too long for one dies, and what died of one is sent once more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.health import health_text
from tempa.adapters.stores.commands.line import rejoin
from tempa.adapters.stores.commands.notices import tell
from tempa.adapters.stores.sql import decode, encode
from tempa.core.work import DELIVERIES, EVENTS
from tempa.webhooks import pace as paces
from tempa.webhooks.breaker import Health
from tempa.webhooks.model import DeadReason
from tempa.webhooks.notices import may_die_aloud, of_death

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.notices import Notice

ENDPOINTS_AT_ONCE = 16  # that a slice deals with; the next goes on


class ParkingPart(Access):
    """`WebhookStore`: healing and giving up, a slice a transaction."""

    async def heal(self, limit: int) -> int:
        """Send up to `limit` that died of an outage once more, where it is over; how many those were."""
        return await self._write(_heal, limit)

    async def expire_parked(self, after_seconds: float, limit: int) -> int:
        """End up to `limit` that were due, and parked, for longer than that; how many those were."""
        return await self._write(_expire, after_seconds, limit)

    async def cancel_stranded(self, limit: int) -> int:
        """Cancel up to `limit` that wait at removed endpoints, where nothing should; how many those were."""
        return await self._write(_cancel_stranded, limit)

    async def parked_endpoints(self) -> Mapping[str, int]:
        """How many endpoints' deliveries are parked, by why: open, paused, disabled."""
        return await self._read(_parked)

    async def line_seconds(self) -> float:
        """How long something could have been sent that waits for a deliverer; 0 if nothing does."""
        return await self._read(_line_seconds)


def _heal(limit: int) -> Flow[Done[int]]:
    """No claim meanwhile: it could take an event whose earlier one begins to wait again in this moment."""
    yield ASK.lock_deliveries()
    found = yield ASK.healing_endpoints(limit=ENDPOINTS_AT_ONCE)
    numbers = [row["number"] for row in found]
    if not numbers:
        return Done(0)
    locked = yield ASK.endpoints_for_update(numbers=encode(numbers))
    moment = yield MOMENT
    healed = 0
    for endpoint in locked:
        healed += yield from _heal_one(endpoint, max(1, limit // len(numbers)), moment.now)
    yield from rejoin(numbers, moment.now)
    return Done(healed, (DELIVERIES,) if healed else ())


def _heal_one(endpoint: Any, limit: int, now: int) -> Flow[int]:
    number = endpoint["number"]
    if not endpoint["healing"] or endpoint["parked_at"] is not None:  # changed since it was found
        return 0
    letters = yield ASK.letters_to_heal(endpoint_number=number, limit=limit)
    healed: int = 0
    if letters:
        healed = yield ASK.heal_letters(numbers=encode([row["number"] for row in letters]), now=now)
    if len(letters) < limit and (yield ASK.any_left_to_heal(endpoint_number=number)) is None:
        yield ASK.healing_ends(endpoint_number=number)
    if not letters:
        return 0
    health = Health.of(decode(endpoint["health"]))
    if health.pace is None:
        paced = replace(health, pace=paces.start(now))
        yield ASK.healing_begins(
            endpoint_number=number, health=health_text(paced), pace_ms=paces.interval_ms(paced.pace)
        )
    return healed


def _expire(after_seconds: float, limit: int) -> Flow[Done[int]]:
    moment = yield MOMENT
    before = moment.now - round(after_seconds * 1000)
    found = yield ASK.long_parked(before=before, limit=ENDPOINTS_AT_ONCE)
    numbers = sorted(row["number"] for row in found)
    if not numbers:
        return Done(0)
    yield ASK.lock_endpoints(numbers=encode(numbers))
    expired = yield ASK.expire_deliveries(numbers=encode(numbers), before=before, now=moment.now, limit=limit)
    yield ASK.expect_healing(numbers=encode(numbers))
    deaths = [(row["account"], _death(row)) for row in expired if may_die_aloud(row["type"])]
    yield from tell(deaths, moment.now)
    yield from rejoin(numbers, moment.now)
    return Done(len(expired), (DELIVERIES, EVENTS) if expired else ())


def _cancel_stranded(limit: int) -> Flow[Done[int]]:
    """Every command sees to it that there is none: this is the net below them."""
    canceled = 0
    moment = yield MOMENT
    for endpoint in (yield ASK.stranded_endpoints(limit=ENDPOINTS_AT_ONCE)):
        left = limit - canceled
        if left > 0:
            number = endpoint["number"]
            canceled += yield ASK.cancel_deliveries(endpoint_number=number, now=moment.now, limit=left)
    return Done(canceled)


def _death(row: Any) -> Notice:
    delivery = {**dict(row), "heals": not row["healed"]}
    return of_death(delivery, {"id": row["endpoint_id"], "url": row["url"]}, DeadReason.ENDPOINT_DOWN)


def _parked() -> Flow[dict[str, int]]:
    rows = yield ASK.parked_endpoints()
    return {row["why"]: row["endpoints"] for row in rows}


def _line_seconds() -> Flow[float]:
    since = yield ASK.line_since()
    moment = yield MOMENT
    return 0.0 if since is None else max(0, moment.now - since) / 1000
