"""Run roles side by side until told to stop. A role that breaks is started again, and said so."""

from __future__ import annotations

import asyncio
import logging
import os
import random
from typing import TYPE_CHECKING

from tempa import __version__
from tempa.core.ids import new_id
from tempa.core.retry import RetryPolicy
from tempa.core.work import pause
from tempa.jobs.dispatch import Worker
from tempa.jobs.lapse import Lapse
from tempa.jobs.perform import Performer
from tempa.jobs.provide import Provider
from tempa.jobs.rescue import Rescuer
from tempa.jobs.retain import Janitor
from tempa.webhooks.deliver import Deliverer, DeliveryRescuer
from tempa.webhooks.fanout import FanOut
from tempa.webhooks.parking import Parking
from tempa.webhooks.retain import DeliveryJanitor
from tempa.wiring.payments import allowance, settling

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tempa.core.roles import Role
    from tempa.wiring.parts import Parts

_logger = logging.getLogger(__name__)

_RESTART_SECONDS = 1.0


API = "api"
ALL_ROLES = (API, "worker", "deliverer", "settler", "rescuer", "janitor")
"""What a process can be told to do.

`deliverer`: events to deliveries, and deliveries out of the house. `settler`: payments to rental time.
"""
_PAID = {API, "settler"}  # who has to know the treasury: the API for quotes


def chosen_roles(parts: Parts, names: Collection[str]) -> list[Role]:
    """The roles of these names, but for the API; and what keeps the deployment itself in order."""
    made: dict[str, Callable[[Parts], list[Role]]] = {
        "worker": workers,
        "deliverer": _delivering,
        "settler": settling,
        "rescuer": lambda parts: [rescuer(parts), lapse(parts)],
        "janitor": lambda parts: [janitor(parts), delivery_janitor(parts)],
    }
    chosen = [role for name, make in made.items() if name in names for role in make(parts)]
    watch = [parts.payments.watch] if parts.payments is not None and _PAID & set(names) else []
    return [*parts.upkeep, *watch, *chosen]


def _delivering(parts: Parts) -> list[Role]:
    return [
        FanOut(store=parts.webhooks, wake=parts.wake),
        deliverer(parts),
        DeliveryRescuer(store=parts.webhooks),
        parking(parts),
    ]


def janitor(parts: Parts) -> Janitor:
    """Deletes what is past its retention."""
    return Janitor(
        store=parts.jobs, artifacts=parts.artifacts, rows_kept_days=parts.settings.jobs.rows_kept_days
    )


def parking(parts: Parts) -> Parking:
    """Looks after deliveries to endpoints that were down."""
    return Parking(store=parts.webhooks, meter=parts.meter, parked_hours=parts.settings.webhooks.parked_hours)


def delivery_janitor(parts: Parts) -> DeliveryJanitor:
    """Deletes deliveries that are past their retention."""
    webhooks = parts.settings.webhooks
    return DeliveryJanitor(
        store=parts.webhooks,
        clock=parts.clock,
        payload_days=webhooks.payload_days,
        attempts_days=webhooks.attempts_days,
    )


def rescuer(parts: Parts) -> Rescuer:
    """Ends or requeues the jobs of workers that have gone."""
    return Rescuer(
        store=parts.jobs,
        artifacts=parts.artifacts,
        meter=parts.meter,
        rng=random.SystemRandom(),
        max_crash_retries=parts.settings.jobs.max_crash_retries,
    )


def lapse(parts: Parts) -> Lapse:
    """Ends jobs whose GPU rental is over."""
    return Lapse(store=parts.jobs, allowance=allowance(parts), wake=parts.wake, meter=parts.meter)


def workers(parts: Parts) -> list[Role]:
    """Claim and perform jobs of every engine there is.

    Engines whose one process does a job at a time have a worker of their own, with a slot for each: their
    jobs wait in the queue, and keep no slot from what runs for seconds.
    """
    engines = parts.engines.values()
    shared = {engine.lane for engine in engines if engine.life_cycle != "resident"}
    apart = [engine for engine in engines if engine.lane not in shared]
    slots = parts.settings.worker.slots or len(os.sched_getaffinity(0))
    performer = _performer(parts)
    made: list[Role] = []
    if shared:
        made.append(_worker(parts, performer, "worker", shared, slots))
    if apart:
        lanes = {engine.lane for engine in apart}
        made.append(_worker(parts, performer, "resident worker", lanes, len(apart)))
    return made


def _worker(parts: Parts, performer: Performer, name: str, lanes: Collection[str], slots: int) -> Worker:
    return Worker(
        store=parts.jobs,
        performer=performer,
        wake=parts.wake,
        meter=parts.meter,
        lanes=sorted(lanes),
        slots=slots,
        lease_seconds=parts.settings.jobs.lease_seconds,
        worker_id=new_id("wrk"),
        name=name,
    )


def _performer(parts: Parts) -> Performer:
    jobs = parts.settings.jobs
    return Performer(
        store=parts.jobs,
        artifacts=parts.artifacts,
        host=parts.host,
        provider=Provider(artifacts=parts.artifacts, fetch=parts.fetch, limits=parts.settings.limits),
        wake=parts.wake,
        clock=parts.clock,
        engines=parts.engines,
        meter=parts.meter,
        rng=random.SystemRandom(),
        lease_seconds=jobs.lease_seconds,
        beat_seconds=jobs.beat_seconds,
        max_crash_retries=jobs.max_crash_retries,
    )


def deliverer(parts: Parts) -> Deliverer:
    """Sends webhooks."""
    webhooks = parts.settings.webhooks
    return Deliverer(
        store=parts.webhooks,
        sender=parts.sender,
        wake=parts.wake,
        clock=parts.clock,
        links=parts.links,
        secrets=parts.keyring.in_force,
        policy=RetryPolicy(
            max_retries=webhooks.max_retries,
            base_seconds=webhooks.backoff_base_seconds,
            cap_seconds=webhooks.backoff_cap_seconds,
        ),
        meter=parts.meter,
        rng=random.SystemRandom(),
        timeout_seconds=webhooks.timeout_seconds,
        body_bytes_max=parts.settings.limits.webhook_body_bytes,
        user_agent=f"Tempa/{__version__}",
        in_flight_max=webhooks.in_flight_max,
    )


async def run_roles(roles: Sequence[Role], stop: asyncio.Event) -> None:
    """Run all until `stop`; returns when each has come to its end."""
    async with asyncio.TaskGroup() as group:
        for role in roles:
            group.create_task(_keep_running(role, stop), name=role.name)


async def _keep_running(role: Role, stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            await role.run(stop)
        except Exception:
            _logger.exception("role %s broke; it starts again", role.name)
            await pause(stop, _RESTART_SECONDS)
