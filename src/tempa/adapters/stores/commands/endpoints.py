"""Registered endpoints: what their owners ask of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.adapters.stores.commands.flow import ASK, MOMENT, Access, Done
from tempa.adapters.stores.commands.health import health_text
from tempa.adapters.stores.commands.line import rejoin
from tempa.adapters.stores.sql import (
    encode,
    endpoint_from,
    endpoint_wishes,
    message_text,
    new_endpoint_row,
    secrets_from,
    subscription_from,
)
from tempa.core.clock import from_ms
from tempa.core.crash import crash_point
from tempa.core.events import TEST_EVENT
from tempa.core.ids import new_id
from tempa.core.work import DELIVERIES, EVENTS
from tempa.webhooks import pace as paces
from tempa.webhooks.breaker import Health
from tempa.webhooks.model import EndpointStatus, Message
from tempa.webhooks.rotation import rotated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tempa.adapters.stores.commands.flow import Flow
    from tempa.webhooks.model import Endpoint, EndpointChange, NewEndpoint, SealedSecret, Subscription

# As with dead letters: a transaction holds up every admission behind it.
CANCELED_PER_TRANSACTION = 1000


class EndpointsPart(Access):
    """`WebhookStore`: the registry."""

    async def add_endpoint(self, new: NewEndpoint, endpoints_max: int) -> Endpoint | None:
        """Register. None: the account has as many as it may have."""
        return await self._write(_add, new, endpoints_max)

    async def endpoints(self, account: str, limit: int, before: str | None) -> list[Endpoint]:
        """The registered ones, newest first, from the one made before `before`."""
        return await self._read(_list, account, limit, before)

    async def endpoint(self, account: str, endpoint_id: str) -> Endpoint | None:
        """One of the account's, a job's URL too, but none that was removed."""
        return await self._read(_one, account, endpoint_id)

    async def endpoint_anywhere(self, endpoint_id: str) -> Endpoint | None:
        """One of any account, `pending` not counted: for its public keys, which are everybody's."""
        return await self._read(_anywhere, endpoint_id)

    async def change_endpoint(
        self, account: str, endpoint_id: str, change: EndpointChange
    ) -> Endpoint | None:
        """Change what is given of a registered one; what waits there goes to where it points now."""
        return await self._write(_change, account, endpoint_id, change)

    async def rotate_endpoint(
        self, account: str, endpoint_id: str, fresh: SealedSecret, overlap_seconds: float
    ) -> Endpoint | None:
        """Sign with `fresh` too from now on, and with it alone when the overlap is over."""
        return await self._write(_rotate, account, endpoint_id, fresh, overlap_seconds)

    async def pause_endpoint(self, account: str, endpoint_id: str) -> Endpoint | None:
        """Park what comes for a registered one from now on."""
        return await self._write(_pause, account, endpoint_id)

    async def resume_endpoint(self, account: str, endpoint_id: str) -> Endpoint | None:
        """Send again: to one that was paused, disabled or parked; to a job's URL too."""
        return await self._write(_resume, account, endpoint_id)

    async def remove_endpoint(self, account: str, endpoint_id: str) -> bool:
        """End a registered one: nothing is sent there again. False: there is none.

        Until nothing waits there any more it is paused; a crash in the middle leaves it so.
        """
        while (removed := await self._write(_remove, account, endpoint_id)) is None:
            crash_point("endpoint.remove.slice")
        return removed

    async def test_endpoint(self, account: str, endpoint_id: str) -> tuple[str, str] | None:
        """An event that is for a registered one alone: the ids of its delivery and of itself."""
        return await self._write(_test, account, endpoint_id)

    async def feed_end(self, account: str) -> int:
        """Where the account's feed ends now."""
        return await self._read(_feed_end, account)

    async def subscriptions(self, accounts: Sequence[str]) -> list[Subscription]:
        """What the registered ones of these accounts want to hear of."""
        return await self._read(_subscriptions, accounts)


def _add(new: NewEndpoint, endpoints_max: int) -> Flow[Done[Endpoint | None]]:
    yield ASK.lock_registrations()
    registered = yield ASK.registered_endpoints(account=new.account)
    if registered >= endpoints_max:
        return Done(None)
    moment = yield MOMENT
    yield ASK.register_endpoint(**new_endpoint_row(new), now=moment.now)
    return Done((yield from _one(new.account, new.id)))


def _list(account: str, limit: int, before: str | None) -> Flow[list[Endpoint]]:
    rows = yield ASK.list_endpoints(account=account, limit=limit, before=before)
    return [endpoint_from(row) for row in rows]


def _one(account: str, endpoint_id: str) -> Flow[Endpoint | None]:
    row = yield ASK.endpoint_of_account(account=account, endpoint_id=endpoint_id)
    return None if row is None else endpoint_from(row)


def _anywhere(endpoint_id: str) -> Flow[Endpoint | None]:
    row = yield ASK.endpoint_anywhere(endpoint_id=endpoint_id)
    return None if row is None else endpoint_from(row)


def _feed_end(account: str) -> Flow[int]:
    position: int | None = yield ASK.feed_end(account=account)
    return position or 0


def _subscriptions(accounts: Sequence[str]) -> Flow[list[Subscription]]:
    rows = yield ASK.subscriptions(accounts=encode(accounts))
    return [subscription_from(row) for row in rows]


def _held(account: str, endpoint_id: str, *, of_jobs: bool = False) -> Flow[Any]:
    """The row of one that nobody else changes until this transaction ends; None if there is none.

    Looked at once more behind its lock: whoever had that may have removed it. `of_jobs`: a job's URL, too.
    """
    row = yield ASK.endpoint_of_account(account=account, endpoint_id=endpoint_id)
    if row is None or not (of_jobs or row["origin"] == "account"):
        return None
    yield ASK.lock_endpoints(numbers=encode([row["number"]]))
    return (yield ASK.endpoint_of_account(account=account, endpoint_id=endpoint_id))


def _change(account: str, endpoint_id: str, change: EndpointChange) -> Flow[Done[Endpoint | None]]:
    row = yield from _held(account, endpoint_id)
    if row is None:
        return Done(None)
    moment = yield MOMENT
    return (yield from _rewrite(row, change.values, moment.now))


def _rotate(
    account: str, endpoint_id: str, fresh: SealedSecret, overlap_seconds: float
) -> Flow[Done[Endpoint | None]]:
    """Behind the lock: of two rotations at once each gives a secret away, and both are signed with."""
    row = yield from _held(account, endpoint_id)
    if row is None:
        return Done(None)
    moment = yield MOMENT
    secrets = rotated(secrets_from(row["secrets"]), fresh, overlap_seconds, from_ms(moment.now))
    return (yield from _rewrite(row, {"secrets": secrets}, moment.now))


def _rewrite(row: Any, values: Mapping[str, Any], now: int) -> Flow[Done[Endpoint | None]]:
    wishes = endpoint_wishes(replace(endpoint_from(row), **values))
    yield ASK.change_endpoint(endpoint_number=row["number"], now=now, **wishes)
    if wishes["url"] != row["url"]:
        yield from _begin_anew(row, now, is_active=row["status"] == EndpointStatus.ACTIVE)
    return (yield from _seen(row, now))


def _pause(account: str, endpoint_id: str) -> Flow[Done[Endpoint | None]]:
    row = yield from _held(account, endpoint_id)
    if row is None:
        return Done(None)
    moment = yield MOMENT
    yield ASK.pause_endpoint(endpoint_number=row["number"], now=moment.now)
    return (yield from _seen(row, moment.now))


def _resume(account: str, endpoint_id: str) -> Flow[Done[Endpoint | None]]:
    row = yield from _held(account, endpoint_id, of_jobs=True)
    if row is None:
        return Done(None)
    moment = yield MOMENT
    yield ASK.resume_endpoint(endpoint_number=row["number"], now=moment.now)
    yield from _begin_anew(row, moment.now, is_active=True)
    return (yield from _seen(row, moment.now))


def _begin_anew(row: Any, now: int, *, is_active: bool) -> Flow[None]:
    """The endpoint counts as new, but for the letters that its next success heals."""
    # What has piled up is let go at a growing pace, as after an outage.
    piled_up = is_active and row["parked_at"] is not None and row["pending"] > 0
    pace = paces.start(now) if piled_up else None
    owes = (yield ASK.any_to_heal(endpoint_number=row["number"])) is not None
    yield ASK.begin_anew(
        endpoint_number=row["number"],
        health=health_text(Health(pace=pace, owes=owes)),
        pace_ms=paces.interval_ms(pace) or None,
    )


def _seen(row: Any, now: int) -> Flow[Done[Endpoint | None]]:
    """The endpoint as it is after a change that may have opened it, or closed it."""
    yield from rejoin([row["number"]], now)
    return Done((yield from _one(row["account"], row["id"])), (DELIVERIES,))


def _remove(account: str, endpoint_id: str) -> Flow[Done[bool | None]]:
    """Cancel a slice of what waits there; behind the last, remove it. None: more waits.

    Deliveries before their endpoint, as a settlement takes them, so that neither waits for the other; a
    claim and a fan-out, which take them the other way round, are kept out meanwhile.
    """
    yield ASK.lock_feed()
    yield ASK.lock_deliveries()
    row = yield ASK.endpoint_of_account(account=account, endpoint_id=endpoint_id)
    if row is None or row["origin"] != "account":
        return Done(answer=False)
    number = row["number"]
    moment = yield MOMENT
    yield ASK.cancel_deliveries(endpoint_number=number, now=moment.now, limit=CANCELED_PER_TRANSACTION)
    yield ASK.lock_endpoints(numbers=encode([number]))
    if (yield ASK.waiting_deliveries(endpoint_number=number)) is not None:
        yield ASK.pause_endpoint(endpoint_number=number, now=moment.now)
        yield from rejoin([number], moment.now)
        return Done(None)
    yield ASK.remove_endpoint(endpoint_number=number, now=moment.now)
    yield ASK.forget_endpoint(endpoint_number=number)
    return Done(answer=True)


def _test(account: str, endpoint_id: str) -> Flow[Done[tuple[str, str] | None]]:
    """Fan-out finds the event later and gives it its place in the feed, but nobody else hears of it."""
    row = yield from _held(account, endpoint_id)
    if row is None:
        return Done(None)
    moment = yield MOMENT
    event_id, delivery_id = new_id("evt"), new_id("dlv")
    data = {"endpoint_id": endpoint_id}
    event = {"id": event_id, "account": account, "job_id": None, "sequence": None, "type": TEST_EVENT}
    yield ASK.insert_event([{**event, "at": moment.now, "body": encode({"data": data}), "announce": None}])
    message = Message(
        id=event_id, account=account, job_id=None, type=TEST_EVENT, at=from_ms(moment.now), data=data
    )
    yield ASK.insert_test_delivery(
        id=delivery_id,
        account=account,
        event_id=event_id,
        endpoint_number=row["number"],
        type=TEST_EVENT,
        now=moment.now,
        message=message_text(message),
    )
    yield from rejoin([row["number"]], moment.now)
    return Done((delivery_id, event_id), (EVENTS, DELIVERIES))
