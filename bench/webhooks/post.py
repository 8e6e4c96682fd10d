"""Tempa as `tempa up` opens it, and webhooks that wait in it: of jobs that really went through."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempa.adapters.meters.prometheus import PrometheusMeter
from tempa.jobs.model import Completed, Result, StoredArtifact, Usage
from tempa.testing.contracts.samples import LANE, a_new_job
from tempa.webhooks.fanout import FanOut
from tempa.wiring import collection
from tempa.wiring.logs import configure
from tempa.wiring.opening import open_deployment
from tempa.wiring.roles import chosen_roles, run_roles
from tempa.wiring.server import open_parts
from tempa.wiring.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from tempa.core.roles import Role
    from tempa.jobs.model import Claimed
    from tempa.wiring.parts import Parts
    from tempa.wiring.settings import Log

ACCOUNTS = 10
_BATCH = 256
_LEASE_SECONDS = 3600.0
_ATTEMPTS = "tempa_webhook_attempts_total"


def _artifact(role: str, name: str) -> StoredArtifact:
    return StoredArtifact(
        name=name,
        role=role,
        file_format=role,
        media_type=f"model/{role}",
        size_bytes=36_912,
        sha256="ab" * 32,
        key=f"cad_1.a1/{name}",
    )


_ENDING = Completed(
    result=Result(
        artifacts=(_artifact("step", "model.step"), _artifact("glb", "model.glb")),
        measurements={"volume": 2801746.16, "solids": 1},
    ),
    usage=Usage(compute_time_ms=12, peak_rss_bytes=91_000_000),
)


class Tally(PrometheusMeter):
    """The product's meter, which tells besides when so many attempts have ended in one way."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts: Counter[str] = Counter()
        self._changed = asyncio.Event()

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Count."""
        super().count(name, amount, **labels)
        if name == _ATTEMPTS:
            self.attempts[labels["outcome"]] += 1
            self._changed.set()

    async def until(self, delivered: int) -> None:
        """Wait until so many attempts were delivered."""
        while self.attempts["delivered"] < delivered:
            self._changed.clear()
            await self._changed.wait()


@contextlib.asynccontextmanager
async def opening(folder: Path) -> AsyncIterator[tuple[Parts, Tally]]:
    """An embedded deployment in `folder` with the settings it comes with. Its log goes nowhere."""
    settings = load_settings(environment={})
    _log_to_nowhere(settings.log)
    async with (
        open_deployment(settings, folder) as deployment,
        deployment.artifacts as artifacts,
        open_parts(settings, deployment, artifacts, "https://tempa.example.com") as parts,
    ):
        collection.settle_down()
        tally = Tally()
        yield replace(parts, meter=tally), tally


def _log_to_nowhere(log: Log) -> None:
    """Each line is made as in the product; only the one who would read it is missing."""
    stderr = sys.stderr
    sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as this process lives
    try:
        configure(log)
    finally:
        sys.stderr = stderr
    logging.getLogger("asyncio").setLevel(logging.ERROR)


async def running_jobs(parts: Parts, urls: Sequence[str], count: int) -> list[Claimed]:
    """Jobs in their first attempt that tell the URLs, in turn, when they are completed."""
    claimed: list[Claimed] = []
    for first in range(0, count, _BATCH):
        numbers = range(first, min(first + _BATCH, count))
        await asyncio.gather(*(_admit(parts, urls, number) for number in numbers))
        while len(claimed) < numbers.stop:
            claimed += await parts.jobs.claim("bench", (LANE,), _BATCH, _LEASE_SECONDS)
    return claimed


async def _admit(parts: Parts, urls: Sequence[str], number: int) -> None:
    place = number % len(urls)
    account, tags = f"account-{place % ACCOUNTS}", {"order": "A-17"}
    asked: dict[str, Any] = {"webhook_url": urls[place], "webhook_events": ("job.completed",), "tags": tags}
    await parts.jobs.admit(a_new_job(parts.clock, account=account, **asked))


async def complete(parts: Parts, claimed: Claimed) -> None:
    """The job's end, which is an event, which is a webhook."""
    assert await parts.jobs.settle(claimed.lease, _ENDING)


async def announce(parts: Parts, urls: Sequence[str], count: int) -> None:
    """`count` deliveries that are due, to the URLs in turn."""
    jobs = await running_jobs(parts, urls, count)
    for first in range(0, count, _BATCH):
        await asyncio.gather(*(complete(parts, one) for one in jobs[first : first + _BATCH]))
    await FanOut(store=parts.webhooks, wake=parts.wake).drain()


@contextlib.asynccontextmanager
async def at_work(*roles: Role) -> AsyncIterator[None]:
    """Roles that run meanwhile; then they are dropped, with whatever still hangs."""
    task = asyncio.create_task(run_roles(roles, asyncio.Event()))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def delivering(parts: Parts) -> list[Role]:
    """All that a process with the role `deliverer` runs."""
    return chosen_roles(parts, ("deliverer",))
