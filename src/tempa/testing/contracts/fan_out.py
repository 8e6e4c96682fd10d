"""Contract of `WebhookStore` for fan-out: each event once to each URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.work import DELIVERIES
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, with_attempts
from tempa.testing.contracts.samples import ACCOUNT
from tempa.webhooks.model import DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Delivery


class FanOutContract:
    """From an event to deliveries."""

    async def test_a_delivery_is_pending_at_once(self, bench: StoreBench) -> None:
        job = await bench.admit()
        (event,) = await bench.store.unplanned(10)
        bench.clock.advance(1.0)
        plan = planned(event, URL)

        async with bench.expect_ring(DELIVERIES):
            assert await bench.store.fan_out([plan]) == 1

        (delivery,) = await _list(bench)
        assert (delivery.id, delivery.event_id) == (plan.deliveries[0].id, event.id)
        assert (delivery.account, delivery.job_id, delivery.url) == (ACCOUNT, job.id, URL)
        assert delivery.type == "cad_generation.queued"
        assert (delivery.status, delivery.attempts, delivery.reason) == (DeliveryStatus.PENDING, 0, None)
        assert delivery.created_at == delivery.next_attempt_at == bench.clock.now()
        assert delivery.finished_at is None

    async def test_one_event_goes_to_every_url_that_is_planned(self, bench: StoreBench) -> None:
        await bench.admit()

        assert await bench.plan(URL, OTHER_URL) == 2

        taken = await bench.take(10)
        assert {claimed.url for claimed in taken} == {URL, OTHER_URL}
        assert len({claimed.message.id for claimed in taken}) == 1

    async def test_one_event_goes_to_one_url_once(self, bench: StoreBench) -> None:
        await bench.admit()

        assert await bench.plan(URL, URL) == 1

    async def test_a_url_is_one_endpoint_of_its_account(self, bench: StoreBench) -> None:
        mine = [(await with_attempts(bench, made))[0] for made in await bench.deliveries_to(URL, 2)]
        (theirs,) = await bench.deliveries_to(URL, account="globex")
        other = await bench.store.delivery("globex", theirs)

        assert mine[0].endpoint_id == mine[1].endpoint_id
        assert mine[0].endpoint_id.startswith("ep_")
        assert other is not None
        assert other[0].endpoint_id != mine[0].endpoint_id


async def _list(bench: StoreBench) -> list[Delivery]:
    return await bench.store.deliveries(
        ACCOUNT, status=None, job_id=None, endpoint_id=None, limit=100, before=None
    )
