"""Contract of `WebhookStore` for news about endpoints: told to the others, and never round and round."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.delivery_steps import OTHER_URL, settle
from tempa.testing.contracts.endpoints import plan_to, register
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, EXHAUSTED, REFUSED, pending
from tempa.webhooks.fanout import plan
from tempa.webhooks.model import Subscription

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Endpoint, Next

ROUNDS_MAX = 40
WEEK_SECONDS = 7 * 24 * 3600.0


class ToldOfOthersContract:
    """What the delivery of a notice comes to."""

    @pytest.mark.parametrize(
        ("then", "http_status", "kinds"),
        [
            (pending(60.0), 503, ["endpoint.failing"]),
            (EXHAUSTED, 503, ["endpoint.failing"]),
            (REFUSED, 410, ["endpoint.disabled"]),
            (REFUSED, 404, []),
        ],
    )
    async def test_what_it_changes_of_its_endpoint_is_told_and_that_it_died_is_not(
        self, bench: StoreBench, then: Next, http_status: int, kinds: list[str]
    ) -> None:
        watcher, other = await register(bench), await register(bench, url=OTHER_URL)
        await _a_job_fails(bench, other)
        assert await _tell(bench, watcher) == ["endpoint.failing"]
        (notice,) = await bench.take(10)
        await settle(bench, notice, then, http_status)

        assert await _tell(bench, watcher, other) == kinds

        told = await bench.take(10)
        assert [claimed.endpoint_id for claimed in told] == [other.id] * len(kinds)
        assert [claimed.message.data["endpoint_id"] for claimed in told] == [watcher.id] * len(kinds)

    async def test_what_a_jobs_event_changes_is_told_to_the_endpoint_itself_too(
        self, bench: StoreBench
    ) -> None:
        endpoint, other = await register(bench), await register(bench, url=OTHER_URL)
        await _a_job_fails(bench, endpoint)
        await _tell(bench, endpoint, other)

        assert {claimed.endpoint_id for claimed in await bench.take(10)} == {endpoint.id, other.id}

    async def test_two_that_both_fail_and_both_ask_soon_have_nothing_left_to_tell(
        self, bench: StoreBench
    ) -> None:
        pair = await register(bench), await register(bench, url=OTHER_URL)
        await _a_job_fails(bench, pair[0])
        news: Counter[str] = Counter()
        for _ in range(ROUNDS_MAX):
            news.update(await _tell(bench, *pair))
            for claimed in await bench.take(10):
                await settle(bench, claimed, pending())
            bench.clock.advance(60.0)

        assert news == {"endpoint.failing": 2, "endpoint.opened": 1}

    async def test_nor_do_two_that_take_and_refuse_in_turns_feed_each_other(self, bench: StoreBench) -> None:
        pair = await register(bench), await register(bench, url=OTHER_URL)
        await _a_job_fails(bench, pair[0])
        tries, kinds = Counter({pair[0].id: 1}), await _tell(bench, *pair)
        for _ in range(ROUNDS_MAX):
            for claimed in await bench.take(10):
                await settle(bench, claimed, DELIVERED if tries[claimed.endpoint_id] % 2 else EXHAUSTED)
                tries[claimed.endpoint_id] += 1
            kinds += await _tell(bench, *pair)

        # One of a job's event, and two each of the three that may follow one another.
        assert len(kinds) == 1 + 3 * 2
        assert await bench.take(10) == []


async def _a_job_fails(bench: StoreBench, endpoint: Endpoint) -> None:
    """A job's event that the endpoint does not take: it fails, and nothing else waits."""
    await plan_to(bench, endpoint)
    (claimed,) = await bench.take(10)
    await settle(bench, claimed, pending(WEEK_SECONDS))


async def _tell(bench: StoreBench, *endpoints: Endpoint) -> list[str]:
    """Fan out what waits, to these, which ask for all that is told of endpoints; which kinds those were."""
    subscriptions = [Subscription(endpoint.id, ACCOUNT, ("endpoint.*",)) for endpoint in endpoints]
    events = await bench.store.unplanned(1000)
    await bench.store.fan_out([plan(event, subscriptions) for event in events])
    return [event.type for event in events if event.job_id is None]
