"""The API and the other roles of a process, run side by side until a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from functools import partial
from ipaddress import ip_network
from typing import TYPE_CHECKING

import uvicorn

from tempa import __version__
from tempa.api.app import create_app
from tempa.api.parts import ApiParts
from tempa.core.addresses import check_url
from tempa.core.allowances import Allowances
from tempa.jobs.estimates import Estimates
from tempa.jobs.intake import Addresses, Intake
from tempa.webhooks.endpoints import Endpoints
from tempa.wiring import collection
from tempa.wiring.chain import terms_of
from tempa.wiring.http_protocol import HttpBounds, bounded
from tempa.wiring.open_files import connections_within, raise_limit
from tempa.wiring.payment_gauges import measure_payments
from tempa.wiring.payments import allowance, calls, proofs, quoting, treasury_standing
from tempa.wiring.readiness import Readiness
from tempa.wiring.roles import API, chosen_roles, run_roles

_logger = logging.getLogger(__name__)

# A client that takes nothing of its answer for this long (or is gone without a word) is dropped by
# the kernel. Accepted sockets inherit it from the listener.
_UNREAD_SECONDS = 60

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fastapi import FastAPI

    from tempa.wiring.parts import Parts
    from tempa.wiring.settings import Settings


async def run(
    parts: Parts,
    roles: Collection[str],
    listener: socket.socket | None,
    stop: asyncio.Event,
    announce: Callable[[], None],
) -> None:
    """Run these roles until `stop`, then drain; the API on `listener`. `announce` tells that they run."""
    files = raise_limit()
    chosen = chosen_roles(parts, roles)  # outside the group, which would wrap what they refuse
    async with asyncio.TaskGroup() as group:
        group.create_task(run_roles(chosen, stop))
        if listener is None:
            collection.settle_down()
            announce()
        else:
            group.create_task(_serve_http(parts, roles, listener, files, stop, announce))
        await stop.wait()
        _logger.info("stopping: running jobs are handed back, deliveries on their way may end")


async def _serve_http(
    parts: Parts,
    roles: Collection[str],
    listener: socket.socket,
    files: int,
    stop: asyncio.Event,
    announce: Callable[[], None],
) -> None:
    settings = parts.settings
    connections = connections_within(files, settings.server.connections_max, settings.webhooks.in_flight_max)
    app = create_app(_api_parts(parts, stop), operations_only=API not in roles)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_SECONDS * 1000)
    server = _Server(_uvicorn_config(app, settings, HttpBounds(connections=connections)), announce)
    leave = asyncio.create_task(_exit_with(server, stop))
    try:
        await server.serve(sockets=[listener])
    finally:
        stop.set()  # a server that could not start must not leave the roles running
        await leave


async def _exit_with(server: _Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


def _uvicorn_config(app: FastAPI, settings: Settings, bounds: HttpBounds) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded(bounds),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.server.drain_seconds)),
    )


def _api_parts(parts: Parts, stop: asyncio.Event) -> ApiParts:
    settings = parts.settings
    allowances = Allowances(parts.accounts, parts.clock, settings.limits)
    intake = Intake(
        store=parts.jobs,
        clock=parts.clock,
        engines=parts.engines,
        limits=settings.limits,
        addresses=Addresses(
            allow_networks=tuple(ip_network(network) for network in parts.allow_networks),
            allow_http=settings.webhooks.allow_http,
        ),
        meter=parts.meter,
        retention_days=settings.jobs.retention_days,
        withheld=parts.withheld,
        artifacts=parts.artifacts,
        allowances=allowances,
        allowance=allowance(parts),
    )
    return ApiParts(
        version=__version__,
        intake=intake,
        jobs=parts.jobs,
        webhooks=parts.webhooks,
        endpoints=_endpoints(parts, intake.addresses),
        settlement=parts.settlement,
        quoting=quoting(parts),
        terms=terms_of(settings),
        calls=calls(parts),
        proofs=proofs(parts),
        keys=parts.keys,
        allowances=allowances,
        estimates=Estimates(parts.jobs, parts.clock),
        artifacts=parts.artifacts,
        links=parts.links,
        link_keys=parts.link_keys,
        wake=parts.wake,
        clock=parts.clock,
        limits=settings.limits,
        engines=parts.engines,
        cors_origins=settings.server.cors_origins,
        render_metrics=lambda: _render_metrics(parts),
        ready=Readiness(parts),
        file_retention_days=settings.jobs.file_retention_days,
        public_url=parts.public_url,
        standing=partial(treasury_standing, parts),
        refunds=settings.payments.refunds,
        stopping=stop,
    )


def _endpoints(parts: Parts, addresses: Addresses) -> Endpoints:
    """The registry takes the addresses that a job's webhook_url may have."""
    limits = parts.settings.limits
    return Endpoints(
        store=parts.webhooks,
        keyring=parts.keyring,
        clock=parts.clock,
        limits=limits,
        check_url=partial(
            check_url,
            allow_networks=addresses.allow_networks,
            allow_http=addresses.allow_http,
            length_max=limits.url_length_max,
        ),
    )


class _Server(uvicorn.Server):
    """uvicorn with our signals (ours drain the roles too) and a call once it accepts requests."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        collection.settle_down()
        self._announce()


async def _render_metrics(parts: Parts) -> tuple[bytes, str]:
    """Counters have counted as things happened; gauges are read now."""
    for (status, lane), count in (await parts.jobs.counts()).items():
        parts.meter.gauge("tempa_jobs", count, status=status, lane=lane)
    await _measure_webhooks(parts)
    await measure_payments(parts)
    writes = parts.store_writes()
    parts.meter.total("tempa_store_commits_total", writes.commits)
    parts.meter.total("tempa_store_commands_total", writes.commands)
    parts.meter.total("tempa_store_failed_commits_total", writes.failures)
    return parts.meter.render()


async def _measure_webhooks(parts: Parts) -> None:
    """All of each gauge, also what there is none of now: it would stay at what it was last."""
    counts = await parts.webhooks.delivery_counts()
    for status in ("pending", "leased", "parked", "dead"):
        parts.meter.gauge("tempa_webhook_deliveries", counts.get(status, 0), status=status)
    parked = await parts.webhooks.parked_endpoints()
    for why in ("open", "paused", "disabled"):
        parts.meter.gauge("tempa_webhook_parked_endpoints", parked.get(why, 0), why=why)
    parts.meter.gauge("tempa_webhook_queue_lag_seconds", await parts.webhooks.line_seconds())
