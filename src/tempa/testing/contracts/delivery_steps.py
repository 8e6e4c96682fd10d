"""Steps that the suites of deliveries share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.testing.contracts.samples import ACCOUNT, COMPLETED, an_outcome

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Attempt, ClaimedDelivery, Delivery, Next

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
