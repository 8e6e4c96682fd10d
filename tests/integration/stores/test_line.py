"""Who stands in the line, after whatever happens: reckoned here from the deliveries, in another way."""

from __future__ import annotations

import math
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tempa.core.clock import to_ms
from tempa.testing.contracts.samples import (
    ACCOUNT,
    COMPLETED,
    DELIVERED,
    EXHAUSTED,
    LEASE_SECONDS,
    REFUSED,
    an_outcome,
    pending,
)
from tempa.webhooks.model import DeadFilter, EndpointStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.contracts.store import StoreBench
    from tempa.webhooks.model import ClaimedDelivery, Delivery

STEPS = 250
URLS = [f"https://h{number}.example/" for number in range(3)]
ENDINGS = [
    DELIVERED,
    EXHAUSTED,
    pending(),
    pending(delay_seconds=3.0),
    pending(delay_seconds=9.0),
    pending(delay_seconds=1.0, hold_seconds=4.0),
    REFUSED,
]


class Life:
    """Random things that happen to deliveries."""

    def __init__(self, bench: StoreBench, seed: int) -> None:
        self.bench, self.dice = bench, random.Random(seed)
        self.taken: list[ClaimedDelivery] = []

    async def step(self) -> None:
        await self.dice.choice(
            [self.announce, self.announce, self.claim, self.claim, self.settle, self.settle, self.settle,
             self.free, self.void, self.redrive, self.discard, self.heal, self.expire, self.resume,
             self.wait, self.wait]
        )()  # fmt: skip

    async def announce(self) -> None:
        """The three events of a job, in order, to one or two URLs."""
        claimed = await self.bench.start()
        assert await self.bench.store.settle(claimed.lease, COMPLETED)
        urls = self.dice.sample(URLS, self.dice.choice([1, 2]))
        await self.bench.plan(*urls)

    async def claim(self) -> None:
        self.taken += await self.bench.take(self.dice.choice([1, 3, 20]))

    async def settle(self) -> None:
        if self.taken:
            claimed = self.taken.pop(self.dice.randrange(len(self.taken)))
            then = self.dice.choice(ENDINGS)
            outcome = an_outcome(http_status=self.dice.choice([404, 404, 410]) if then is REFUSED else 503)
            await self.bench.store.settle_delivery(claimed, outcome, then)

    async def heal(self) -> None:
        await self.bench.store.heal(3)

    async def expire(self) -> None:
        await self.bench.store.expire_parked(20.0, 3)

    async def resume(self) -> None:
        """Those that answered 410."""
        for endpoint_id in sorted({delivery.endpoint_id for delivery in await self.listed()}):
            endpoint = await self.bench.store.endpoint(ACCOUNT, endpoint_id)
            if endpoint is not None and endpoint.status is EndpointStatus.DISABLED:
                await self.bench.store.resume_endpoint(ACCOUNT, endpoint_id)

    async def listed(self) -> list[Delivery]:
        return await self.bench.store.deliveries(
            ACCOUNT, status=None, job_id=None, endpoint_id=None, limit=1000, before=None
        )

    async def free(self) -> None:
        await self.bench.store.free_expired_deliveries()

    async def void(self) -> None:
        await self.bench.store.void_delivery_leases()

    async def redrive(self) -> None:
        which = DeadFilter(delivery_ids=tuple(await self.dead()))
        await self.bench.store.redrive(ACCOUNT, which, self.dice.choice([0.0, 0.5]))

    async def discard(self) -> None:
        await self.bench.store.discard(ACCOUNT, DeadFilter(delivery_ids=tuple((await self.dead())[:1])), "x")

    async def dead(self) -> list[str]:
        groups = await self.bench.store.dead_groups(ACCOUNT)
        which = [DeadFilter(group=group.id) for group in groups]
        letters = [await self.bench.store.dead_letters(ACCOUNT, one, 100, None) for one in which]
        return [letter.id for some in letters for letter in some]

    async def wait(self) -> None:
        self.bench.clock.advance(self.dice.choice([0.001, 0.5, 2.0, LEASE_SECONDS + 1]))


def due_at(endpoint: sqlite3.Row, deliveries: list[sqlite3.Row]) -> int | None:
    """When the endpoint's next delivery may be claimed; None while none may be."""
    if endpoint["status"] != "active":
        return None
    most = endpoint["in_flight_max"] if endpoint["parked_at"] is None else 1
    in_order = sorted(deliveries, key=lambda row: row["event_number"])
    unfinished = [row for row in in_order if row["finished_at"] is None]
    if sum(row["status"] == "leased" for row in unfinished) >= most:
        return None
    first_of_job: dict[str, sqlite3.Row] = {}
    for row in unfinished:
        first_of_job.setdefault(row["job_id"] or row["id"], row)  # what is about no job waits for none
    times = [row["next_at"] for row in first_of_job.values() if row["status"] == "pending"]
    paced_at = 0 if endpoint["pace_ms"] is None else math.ceil(endpoint["paced_at"])
    return max(min(times), endpoint["held_until"], paced_at) if times else None


@pytest.mark.parametrize("seed", range(4))
async def test_an_endpoint_stands_in_the_line_exactly_while_it_has_something_to_send(
    bench: StoreBench, path: Path, seed: int
) -> None:
    life, lined_up = Life(bench, seed), 0
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        for _ in range(STEPS):
            await life.step()
            now = to_ms(bench.clock.now())
            for endpoint in connection.execute("select * from endpoint").fetchall():
                deliveries = connection.execute(
                    "select * from delivery where endpoint_number = ?", [endpoint["number"]]
                ).fetchall()
                expected = due_at(endpoint, deliveries)
                if expected is None or expected > now:
                    assert endpoint["line_at"] == expected
                else:
                    assert endpoint["line_at"] is not None
                    assert endpoint["line_at"] <= now
                    lined_up += 1
    assert lined_up > STEPS / 2
