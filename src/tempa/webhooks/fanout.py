"""From events to deliveries: once for each event and URL, and the feed's order on the way."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tempa.core.crash import crash_point
from tempa.core.errors import StoreUnavailable
from tempa.core.events import TERMINAL_EVENTS
from tempa.core.ids import new_id
from tempa.core.work import EVENTS, either
from tempa.webhooks.model import Message, NewDelivery, Planned

if TYPE_CHECKING:
    import asyncio

    from tempa.core.events import Event
    from tempa.core.work import Wake
    from tempa.webhooks.ports import WebhookStore

_logger = logging.getLogger(__name__)

_BATCH = 256
_POLL_SECONDS = 1.0
_VERBS = {"job.started": "started", **{name: name.removeprefix("job.") for name in TERMINAL_EVENTS}}


def plan(event: Event) -> Planned:
    """What an event is to outsiders: the deliveries it asks for, possibly none. Pure."""
    verb = _VERBS.get(event.type)
    if verb is None or event.announce is None or not event.announce["webhook_url"]:
        return Planned(event_id=event.id, deliveries=())
    if not _wanted(event, verb):
        return Planned(event_id=event.id, deliveries=())
    delivery = NewDelivery(id=new_id("dlv"), url=event.announce["webhook_url"], message=message(event, verb))
    return Planned(event_id=event.id, deliveries=(delivery,))


def message(event: Event, verb: str) -> Message:
    """The event under its family's name (CONTRACTS section 3)."""
    assert event.announce is not None
    return Message(
        id=event.id,
        account=event.account,
        job_id=event.job_id,
        type=f"{event.announce['family']}.{verb}",
        at=event.at,
        data=event.announce["data"],
        links={role: (job_id, name) for role, (job_id, name) in event.announce["links"].items()},
        traceparent=event.announce.get("traceparent"),
    )


def _wanted(event: Event, verb: str) -> bool:
    assert event.announce is not None
    asked = event.announce["webhook_events"]
    if not asked:
        return event.type in TERMINAL_EVENTS
    return f"{event.announce['family']}.{verb}" in asked or f"job.{verb}" in asked


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
            made += await self.store.fan_out([_plan_apart(event) for event in events])
            crash_point("fan_out.committed")
        return made


def _plan_apart(event: Event) -> Planned:
    """One event that cannot be read must not stop the feed of everybody: it gets no deliveries."""
    try:
        return plan(event)
    except Exception:
        _logger.exception("an event could not be announced", extra={"event_id": event.id})
        return Planned(event_id=event.id, deliveries=())
