"""From events to deliveries: once for each event and endpoint, and the feed's order on the way."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.ids import new_id
from tempa.core.work import EVENTS, either
from tempa.webhooks.filters import VERBS, wants
from tempa.webhooks.model import Message, NewDelivery, Planned

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from tempa.core.events import Event
    from tempa.core.work import Wake
    from tempa.webhooks.model import Subscription
    from tempa.webhooks.ports import WebhookStore

_logger = logging.getLogger(__name__)

_BATCH = 256
_POLL_SECONDS = 1.0


def plan(event: Event, subscriptions: Sequence[Subscription] = ()) -> Planned:
    """What an event is to outsiders: the deliveries it asks for, possibly none. Pure.

    `subscriptions` are those of the event's account. A registered endpoint of the same URL as the job's
    is another endpoint: each gets its own delivery, signed with its own secret.
    """
    told = message(event)
    if told is None:
        return Planned(event_id=event.id, deliveries=())
    return Planned(event_id=event.id, deliveries=tuple(_deliveries(event, told, subscriptions)))


def message(event: Event) -> Message | None:
    """The event as outsiders hear of it (CONTRACTS section 3); None: they do not.

    A job's goes by its family's name, any other by its own.
    """
    announce = event.announce
    if announce is None:
        return None
    if event.job_id is None:
        name: str | None = event.type
    else:
        verb = VERBS.get(event.type)
        name = None if verb is None else f"{announce['family']}.{verb}"
    if name is None:
        return None
    return Message(
        id=event.id,
        account=event.account,
        job_id=event.job_id,
        type=name,
        at=event.at,
        data=announce["data"],
        links={role: (job_id, file) for role, (job_id, file) in announce.get("links", {}).items()},
        traceparent=announce.get("traceparent"),
        chain=announce.get("chain", 0),
    )


def _deliveries(event: Event, told: Message, subscriptions: Sequence[Subscription]) -> Iterator[NewDelivery]:
    assert event.announce is not None
    url = event.announce.get("webhook_url")
    if url and _job_wants(event, told):
        yield NewDelivery(id=new_id("dlv"), message=told, url=url)
    for each in subscriptions:
        if told.chain and told.data.get("endpoint_id") == each.endpoint_id:
            continue  # a telling has changed it: to tell it that could change it again
        if each.account == event.account and wants(each.events, told.type, of_job=event.job_id is not None):
            yield NewDelivery(id=new_id("dlv"), message=told, endpoint_id=each.endpoint_id)


def _job_wants(event: Event, told: Message) -> bool:
    assert event.announce is not None
    asked = event.announce["webhook_events"]
    return wants(asked or None, told.type, of_job=True)


@dataclass(kw_only=True)
class FanOut:
    """The sequencer: gives every event its place in the feed and makes its deliveries."""

    store: WebhookStore
    wake: Wake
    name: str = "fanout"

    async def run(self, stop: asyncio.Event) -> None:
        """Fan out until `stop`. A ring that is lost costs at most a second."""
        with self.wake.listen(EVENTS) as bell:
            while not stop.is_set():
                try:
                    await self.drain()
                except StoreUnavailable:
                    _logger.warning("the store is away; fan-out waits for it")
                await either(bell.wait(_POLL_SECONDS), stop.wait())

    async def drain(self) -> int:
        """Fan out all there is. Returns how many deliveries were made."""
        made = 0
        while events := await self.store.unplanned(_BATCH):
            crash_point("fan_out.seen")
            subscriptions = await self._subscriptions(events)
            made += await self.store.fan_out([_plan_apart(event, subscriptions) for event in events])
            crash_point("fan_out.committed")
        return made

    async def _subscriptions(self, events: Sequence[Event]) -> Sequence[Subscription]:
        """What is registered now, of all accounts whose events are told outside."""
        accounts = sorted({event.account for event in events if event.announce is not None})
        return await self.store.subscriptions(accounts) if accounts else ()


def _plan_apart(event: Event, subscriptions: Sequence[Subscription]) -> Planned:
    """One event that cannot be read must not stop the feed of everybody: it gets no deliveries."""
    try:
        return plan(event, subscriptions)
    except Exception:
        _logger.exception("an event could not be announced", extra={"event_id": event.id})
        return Planned(event_id=event.id, deliveries=())
