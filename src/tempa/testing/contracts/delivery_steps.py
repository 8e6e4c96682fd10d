"""Steps that the suites of deliveries share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tempa.testing.contracts.samples import ACCOUNT, COMPLETED, DELIVERED, an_outcome, pending

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Attempt, ClaimedDelivery, Delivery, Endpoint, Next

URL = "https://hooks.example/a"
OTHER_URL = "https://hooks.example/b"


async def settle(
    bench: StoreBench,
    claimed: ClaimedDelivery,
    then: Next,
    http_status: int | None = 503,
    duration_ms: int = 41,
) -> bool:
    """Settle an attempt; whether that was taken."""
    outcome = replace(an_outcome(http_status=http_status), duration_ms=duration_ms)
    return await bench.store.settle_delivery(claimed, outcome, then) is not None


async def with_attempts(bench: StoreBench, delivery_id: str) -> tuple[Delivery, list[Attempt]]:
    """A delivery and its attempts, as they stand on record."""
    found = await bench.store.delivery(ACCOUNT, delivery_id)
    assert found is not None
    return found


async def life_to(bench: StoreBench, *urls: str) -> tuple[str, str]:
    """A job whose start and end are announced to `urls`; the ids of both events."""
    await bench.admit()
    await bench.plan()
    (claimed,) = await bench.claim()
    assert await bench.store.settle(claimed.lease, COMPLETED)
    started, completed = await bench.store.unplanned(10)
    await bench.plan(*urls)
    return started.id, completed.id


async def endpoint_of(bench: StoreBench, delivery_id: str) -> Endpoint:
    """Where a delivery goes, as it fares now."""
    delivery, _ = await with_attempts(bench, delivery_id)
    found = await bench.store.endpoint(ACCOUNT, delivery.endpoint_id)
    assert found is not None
    return found


async def take_down(bench: StoreBench, url: str = URL, count: int = 3) -> list[str]:
    """`count` deliveries, of which the first three fail at once: the next probe is due in a second."""
    made = await bench.deliveries_to(url, count)
    for claimed in await bench.take(3):
        assert await settle(bench, claimed, pending())
    return made


async def bring_back(bench: StoreBench, url: str = URL) -> None:
    """The next probe is taken."""
    bench.clock.advance(60.0)
    (probe,) = await bench.take()
    assert probe.url == url
    assert (await endpoint_of(bench, probe.id)).parked_at is not None
    assert await settle(bench, probe, DELIVERED, http_status=200)


async def told(bench: StoreBench) -> list[tuple[str, Mapping[str, Any]]]:
    """What was told of endpoints and deliveries since this was asked last: type and data."""
    events = await bench.store.unplanned(1000)
    await bench.plan()
    return [(event.type, event.body["data"]) for event in events if event.job_id is None]
