"""Several deliverers on one database: what an endpoint's owner allows holds over all of them together."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import asynccontextmanager
from datetime import timedelta
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.stores.commands import deliveries
from tempa.adapters.stores.postgres.connections import Address
from tempa.adapters.stores.postgres.store import PostgresStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.retry import RetryPolicy
from tempa.core.work import DELIVERIES
from tempa.testing.contracts.bench import ROOMY, StoreBench
from tempa.testing.contracts.endpoints import register, sent_to
from tempa.testing.contracts.samples import ACCOUNT
from tempa.testing.receiver import Receiver
from tempa.webhooks.deliver import Deliverer, DeliveryRescuer
from tempa.webhooks.pace import LAG_MS
from tempa.webhooks.room import Room
from tests.integration.postgres.sessions import unfinished
from tests.unit.webhooks.samples import NoLinks, Tally

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tempa.core.roles import Role
    from tempa.webhooks.model import Attempt, Endpoint
    from tempa.webhooks.ports import Answer, Outbound
    from tests.integration.postgres.sessions import Session

DELIVERERS = 3
PATIENCE_SECONDS = 30.0
CLOCK = SystemClock()


class Gauge:
    """A sender around another: how many exchanges are on their way, over all that share `levels`."""

    def __init__(self, inner: CurlSender, levels: Counter[str]) -> None:
        self._inner, self._levels = inner, levels

    async def send(self, request: Outbound) -> Answer:
        self._levels["now"] += 1
        self._levels["most"] = max(self._levels["most"], self._levels["now"])
        try:
            return await self._inner.send(request)
        finally:
            self._levels["now"] -= 1

    async def close(self) -> None:
        await self._inner.close()


class Fleet:
    """Deliverers with a store, a doorbell and a transport each: as processes have them."""

    def __init__(self, stores: list[tuple[PostgresStore, InProcessWake]]) -> None:
        self.stores = stores
        self.levels: Counter[str] = Counter()
        self.bench = StoreBench(store=stores[0][0], clock=CLOCK, wake=stores[0][1])  # type: ignore[arg-type]

    @asynccontextmanager
    async def delivering(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        senders = [Gauge(CurlSender([ip_network("127.0.0.0/8")]), self.levels) for _ in self.stores]
        roles: list[Role] = [
            self._deliverer(place, sender) for place, sender in zip(self.stores, senders, strict=True)
        ]
        rescuer = DeliveryRescuer(store=self.stores[-1][0], every_seconds=0.05)
        tasks = [asyncio.create_task(role.run(stop)) for role in [*roles, rescuer]]
        try:
            yield
        finally:
            stop.set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*tasks)
            for sender in senders:
                await sender.close()

    def _deliverer(self, place: tuple[PostgresStore, InProcessWake], sender: Gauge) -> Deliverer:
        store, wake = place
        return Deliverer(
            store=store,
            sender=sender,
            wake=wake,
            clock=CLOCK,
            links=NoLinks(),
            secrets=lambda _claimed, _now: ["whsec_" + "c2VjcmV0" * 4],
            policy=RetryPolicy(),
            meter=Tally(),
            rng=random.Random(7),
            timeout_seconds=20.0,
            body_bytes_max=10_000,
            user_agent="Tempa",
        )

    def ring_all(self) -> None:
        """As NOTIFY does between processes."""
        for _, wake in self.stores:
            wake.ring(DELIVERIES)

    async def attempts(self, delivery_ids: list[str]) -> list[Attempt]:
        found = [await self.bench.store.delivery(ACCOUNT, one) for one in delivery_ids]
        return [attempt for delivery in found if delivery for attempt in delivery[1]]

    async def until_delivered(self) -> None:
        """Wait until nothing is left."""
        with self.stores[0][1].listen(DELIVERIES) as bell:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await self.bench.store.delivery_counts():
                    self.ring_all()
                    await bell.wait(0.2)


@pytest.fixture
async def fleet(database: str) -> AsyncIterator[Fleet]:
    stores = []
    for _ in range(DELIVERERS):
        wake = InProcessWake()
        stores.append((await PostgresStore.open(Address(database), wake=wake), wake))
    yield Fleet(stores)
    for store, _ in stores:
        await store.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as listening:
        yield listening


async def make_waiting(fleet: Fleet, endpoint: Endpoint, count: int) -> list[str]:
    """So many deliveries to the endpoint; their ids."""
    return [(await sent_to(fleet.bench, endpoint))[0] for _ in range(count)]


def nothing_came_twice(receiver: Receiver, count: int) -> bool:
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    return len(ids) == len(set(ids)) == count


async def test_no_more_are_in_flight_than_its_owner_allows_over_all(fleet: Fleet, receiver: Receiver) -> None:
    """Two at a time while both hang at the receiver, and never more until all have come, each once."""
    endpoint = await register(fleet.bench, url=receiver.url("/hold"), in_flight_max=2)
    waiting = await make_waiting(fleet, endpoint, 60)
    async with fleet.delivering():
        await asyncio.to_thread(receiver.wait_for, 2, PATIENCE_SECONDS)
        for store, _ in fleet.stores:  # nobody gets a third, whoever asks
            fleet.ring_all()
            assert (await store.claim_deliveries(Room(ROOMY), 10, 30.0)).taken == ()
        assert (len(receiver.requests), fleet.levels["now"]) == (2, 2)
        receiver.release()
        await fleet.until_delivered()

    assert fleet.levels["most"] == 2
    assert nothing_came_twice(receiver, 60)
    assert [one.attempt for one in await fleet.attempts(waiting)] == [1] * 60


@pytest.mark.parametrize("limit", [{"in_flight_max": 2}, {"rate_per_second": 0.5}])
async def test_a_claim_waits_for_another_that_is_not_finished_and_counts_what_it_took(
    fleet: Fleet, session: Session, limit: dict[str, Any]
) -> None:
    endpoint = await register(fleet.bench, url="https://hooks.example/", **limit)
    await make_waiting(fleet, endpoint, 6)
    (here, _), (there, _), *_ = fleet.stores

    async with unfinished(here, deliveries._claim(Room(ROOMY), 10, 30.0)) as first:
        rival = asyncio.create_task(there.claim_deliveries(Room(ROOMY), 10, 30.0))
        await session.until_blocked(1)

    assert len(first.answer.taken) == limit.get("in_flight_max", 1)
    assert (await asyncio.wait_for(rival, PATIENCE_SECONDS)).taken == ()


async def test_a_rate_is_kept_over_all(fleet: Fleet, receiver: Receiver) -> None:
    """Forty a second: by the starts on record to the millisecond, and by what came at the receiver."""
    rate, count, in_flight = 40.0, 60, 4
    url = receiver.url("/ok")
    endpoint = await register(fleet.bench, url=url, in_flight_max=in_flight, rate_per_second=rate)
    waiting = await make_waiting(fleet, endpoint, count)
    async with fleet.delivering():
        await fleet.until_delivered()

    starts = sorted(one.started_at for one in await fleet.attempts(waiting))
    assert most_within(starts, timedelta(seconds=0.5)) <= 0.5 * rate + 1 + LAG_MS / 1000 * rate
    arrived = sorted(request.at_seconds for request in receiver.requests)
    assert most_within(arrived, 0.5) <= 0.5 * rate + 1 + LAG_MS / 1000 * rate + in_flight
    assert (count - 1) / rate - LAG_MS / 1000 <= arrived[-1] - arrived[0] + in_flight / rate
    assert nothing_came_twice(receiver, count)


def most_within(times: list[Any], span: Any) -> int:
    """The most of these, in order, in any half-open span."""
    counts: list[int] = [sum(start <= at < start + span for at in times) for start in times]
    return max(counts)


async def test_many_endpoints_are_shared_out_and_nothing_is_sent_twice(
    fleet: Fleet, receiver: Receiver
) -> None:
    """Claims race all the time here: each delivery is had by one."""
    endpoints = [await register(fleet.bench, url=receiver.url(f"/ok?{n}")) for n in range(12)]
    waiting = [one for endpoint in endpoints for one in await make_waiting(fleet, endpoint, 20)]
    async with fleet.delivering():
        await fleet.until_delivered()

    assert nothing_came_twice(receiver, 240)
    assert [one.attempt for one in await fleet.attempts(waiting)] == [1] * 240
    by_path = Counter(request.path for request in receiver.requests)
    assert by_path == {f"/ok?{n}": 20 for n in range(12)}
