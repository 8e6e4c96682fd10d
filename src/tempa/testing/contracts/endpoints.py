"""Contract of `WebhookStore` for registered endpoints: what their owners ask is what happens."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.events import TEST_EVENT
from tempa.core.ids import new_id
from tempa.core.work import DELIVERIES, EVENTS
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.delivery_steps import OTHER_URL, URL, with_attempts
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, OTHER_ACCOUNT, an_outcome
from tempa.webhooks.model import (
    DeliveryStatus,
    EndpointChange,
    EndpointStatus,
    NewDelivery,
    NewEndpoint,
    Planned,
    SealedSecret,
    Signing,
    Subscription,
)

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Endpoint

MANY = 100
_NOBODY = "ep_00000000000000000000000000"


class EndpointRegistryContract:
    """Registered, listed, changed, each by its own account only."""

    async def test_what_was_registered_is_what_is_read(self, bench: StoreBench) -> None:
        new = a_new_endpoint(
            bench,
            events=("job.completed", "endpoint.*"),
            description="Fertigung „Nord“",
            signing=Signing.ED25519,
            retry_statuses=frozenset({404, 425}),
            in_flight_max=9,
            rate_per_second=2.5,
        )
        added = await bench.store.add_endpoint(new, MANY)

        assert added is not None
        asked = {name: getattr(new, name) for name in NewEndpoint.__dataclass_fields__}
        assert {name: getattr(added, name) for name in asked} == asked
        assert (added.status, added.health, added.pending) == (EndpointStatus.ACTIVE, None, 0)
        assert (added.parked_at, added.held_until) == (None, None)
        assert added.created_at == added.changed_at == bench.clock.now()
        assert await bench.store.endpoint(ACCOUNT, new.id) == added
        assert await bench.store.endpoint_anywhere(new.id) == added

    async def test_the_plainest_one_has_the_defaults(self, bench: StoreBench) -> None:
        added = await register(bench)
        assert (added.events, added.description, added.retry_statuses) == (None, "", frozenset())
        assert (added.in_flight_max, added.rate_per_second, added.signing) == (4, None, Signing.HMAC)

    async def test_an_account_has_as_many_as_it_may(self, bench: StoreBench) -> None:
        first = await bench.store.add_endpoint(a_new_endpoint(bench), 1)
        assert first is not None
        assert await bench.store.add_endpoint(a_new_endpoint(bench), 1) is None
        assert await bench.store.add_endpoint(a_new_endpoint(bench, account=OTHER_ACCOUNT), 1)

        assert await bench.store.remove_endpoint(ACCOUNT, first.id)
        assert await bench.store.add_endpoint(a_new_endpoint(bench), 1)

    async def test_one_that_no_delivery_tells_of_leaves_nothing_behind(self, bench: StoreBench) -> None:
        new = a_new_endpoint(bench)
        assert await bench.store.add_endpoint(new, MANY)
        assert await bench.store.remove_endpoint(ACCOUNT, new.id)
        assert await bench.store.add_endpoint(new, MANY), "its id is free again"

    async def test_they_are_listed_newest_first_in_pages(self, bench: StoreBench) -> None:
        made = [await register(bench) for _ in range(5)]
        await register(bench, account=OTHER_ACCOUNT)
        await bench.deliveries_to(URL)  # a job's URL is not registered
        newest_first = [endpoint.id for endpoint in reversed(made)]

        first = await bench.store.endpoints(ACCOUNT, 3, None)
        rest = await bench.store.endpoints(ACCOUNT, 3, first[-1].id)

        assert [endpoint.id for endpoint in (*first, *rest)] == newest_first

    async def test_two_may_have_one_url(self, bench: StoreBench) -> None:
        one, other = await register(bench), await register(bench)
        assert one.id != other.id
        assert len(await bench.store.endpoints(ACCOUNT, 10, None)) == 2

    async def test_only_what_is_given_changes(self, bench: StoreBench) -> None:
        before = await register(bench, events=("job.failed",), rate_per_second=2.0)
        bench.clock.advance(5.0)

        after = await change(bench, before, url=OTHER_URL, description="new", rate_per_second=None)

        assert after == replace(
            before, url=OTHER_URL, description="new", rate_per_second=None, changed_at=bench.clock.now()
        )
        assert (await change(bench, before, events=None)).events is None

    async def test_of_two_rotations_both_secrets_stand(self, bench: StoreBench) -> None:
        before = await register(bench)
        first, second = a_secret(bench, "first"), a_secret(bench, "second")
        for fresh in (first, second):
            await bench.store.rotate_endpoint(ACCOUNT, before.id, fresh, 60.0)

        after = await bench.store.endpoint(ACCOUNT, before.id)

        assert after is not None
        end = bench.clock.now() + timedelta(seconds=60)
        assert after.secrets == (
            second,
            replace(first, expires_at=end),
            replace(before.secrets[0], expires_at=end),
        )

    async def test_nobody_touches_what_is_not_his(self, bench: StoreBench) -> None:
        theirs = await register(bench, account=OTHER_ACCOUNT)
        for endpoint_id in (theirs.id, _NOBODY):
            assert await bench.store.endpoint(ACCOUNT, endpoint_id) is None
            await _cannot_touch(bench, endpoint_id)
        assert await bench.store.endpoint(OTHER_ACCOUNT, theirs.id) == theirs

    async def test_a_jobs_url_is_seen_but_not_changed(self, bench: StoreBench) -> None:
        (delivery_id,) = await bench.deliveries_to(URL)
        found, _ = await with_attempts(bench, delivery_id)

        seen = await bench.store.endpoint(ACCOUNT, found.endpoint_id)

        assert seen is not None
        assert (seen.url, seen.secrets, seen.pending, seen.of_jobs) == (URL, (), 1, True)
        assert not (await register(bench)).of_jobs
        change = EndpointChange(values={"description": "mine"})
        assert await bench.store.change_endpoint(ACCOUNT, seen.id, change) is None
        assert await bench.store.pause_endpoint(ACCOUNT, seen.id) is None
        assert not await bench.store.remove_endpoint(ACCOUNT, seen.id)
        assert await bench.store.test_endpoint(ACCOUNT, seen.id) is None
        resumed = await bench.store.resume_endpoint(ACCOUNT, seen.id)
        assert resumed is not None
        assert resumed.status is EndpointStatus.ACTIVE

    async def test_the_feeds_end_is_the_newest_events_position(self, bench: StoreBench) -> None:
        assert await bench.store.feed_end(ACCOUNT) == 0
        await bench.admit()
        await bench.plan()
        await bench.admit(account=OTHER_ACCOUNT)
        await bench.plan()
        (event,) = await bench.store.feed(ACCOUNT, 0, 10)
        assert await bench.store.feed_end(ACCOUNT) == event.position

    async def test_subscriptions_are_those_of_the_accounts_asked_for(self, bench: StoreBench) -> None:
        mine = await register(bench, events=("job.failed",))
        theirs = await register(bench, account=OTHER_ACCOUNT)
        removed = await register(bench)
        paused = await register(bench)
        await register(bench, account="hooli")
        await sent_to(bench, removed)  # which goes on telling of it
        assert await bench.store.remove_endpoint(ACCOUNT, removed.id)
        await bench.store.pause_endpoint(ACCOUNT, paused.id)

        found = await bench.store.subscriptions([ACCOUNT, OTHER_ACCOUNT])

        assert found == [
            Subscription(mine.id, ACCOUNT, ("job.failed",)),
            Subscription(paused.id, ACCOUNT, None),
            Subscription(theirs.id, OTHER_ACCOUNT, None),
        ]
        assert await bench.store.subscriptions([]) == []


class EndpointDeliveryContract:
    """What is sent to a registered endpoint, and what no more."""

    async def test_a_claim_brings_what_the_endpoint_asks_for(self, bench: StoreBench) -> None:
        endpoint = await register(bench, retry_statuses=frozenset({404}))
        await plan_to(bench, endpoint)

        (claimed,) = await bench.take()

        assert (claimed.endpoint_id, claimed.url) == (endpoint.id, URL)
        assert claimed.secrets == endpoint.secrets
        assert claimed.retry_statuses == {404}

    async def test_a_jobs_url_and_an_endpoint_of_it_are_two(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint, URL)

        taken = await bench.take(10)

        assert [claimed.url for claimed in taken] == [URL, URL]
        assert {claimed.secrets for claimed in taken} == {(), endpoint.secrets}
        assert len({claimed.endpoint_id for claimed in taken}) == 2

    async def test_what_waits_goes_to_where_the_endpoint_points_now(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        await change(bench, endpoint, url=OTHER_URL)
        assert [claimed.url for claimed in await bench.take()] == [OTHER_URL]

    async def test_a_paused_one_gets_nothing_until_it_is_resumed(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        bench.clock.advance(1.0)
        paused = await bench.store.pause_endpoint(ACCOUNT, endpoint.id)
        assert paused is not None
        assert (paused.status, paused.parked_at) == (EndpointStatus.PAUSED, bench.clock.now())
        await plan_to(bench, endpoint)
        assert await bench.take(10) == []

        async with bench.expect_ring(DELIVERIES):
            resumed = await bench.store.resume_endpoint(ACCOUNT, endpoint.id)

        assert resumed is not None
        assert (resumed.status, resumed.parked_at) == (EndpointStatus.ACTIVE, None)
        assert resumed.pending == 2
        assert await bench.take(10) != []

    async def test_a_resumed_one_is_claimed_at_once_though_it_was_held(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        held = replace(DELIVERED, hold_seconds=600.0)
        await bench.store.settle_delivery(claimed, an_outcome("delivered", 200), held)
        await plan_to(bench, endpoint)
        assert await bench.take() == []

        await bench.store.resume_endpoint(ACCOUNT, endpoint.id)

        assert len(await bench.take()) == 1

    async def test_of_a_removed_one_all_that_waits_is_canceled(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        waiting, _ = await sent_to(bench, endpoint)
        other = await register(bench)
        spared, _ = await sent_to(bench, other)

        assert await bench.store.remove_endpoint(ACCOUNT, endpoint.id)

        for delivery_id, status in (
            (claimed.id, DeliveryStatus.CANCELED),
            (waiting, DeliveryStatus.CANCELED),
            (spared, DeliveryStatus.PENDING),
        ):
            found, _ = await with_attempts(bench, delivery_id)
            assert (found.status, found.discard_reason) == (status, None)

    async def test_a_removed_one_is_gone_and_gets_nothing_more(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        await plan_to(bench, endpoint)
        (claimed,) = await bench.take()
        assert await bench.store.remove_endpoint(ACCOUNT, endpoint.id)

        await bench.store.settle_delivery(claimed, an_outcome(), replace(DELIVERED))
        await plan_to(bench, endpoint)
        bench.let_lapse()
        await bench.store.free_expired_deliveries()

        assert await bench.take(10) == []
        assert await bench.store.endpoint(ACCOUNT, endpoint.id) is None
        assert await bench.store.endpoint_anywhere(endpoint.id) is None
        assert await bench.store.endpoints(ACCOUNT, 10, None) == []
        await _cannot_touch(bench, endpoint.id)

    async def test_a_test_goes_to_its_endpoint_alone(self, bench: StoreBench) -> None:
        endpoint, _ = await register(bench), await register(bench)
        await bench.plan()

        async with bench.expect_ring(EVENTS, DELIVERIES):
            delivery_id, event_id = await sent_to(bench, endpoint)

        (claimed,) = await bench.take(10)
        assert (claimed.id, claimed.endpoint_id, claimed.message.id) == (delivery_id, endpoint.id, event_id)
        assert (claimed.message.type, claimed.message.job_id) == (TEST_EVENT, None)
        assert claimed.message.data == {"endpoint_id": endpoint.id}
        (event,) = await bench.store.unplanned(10)
        assert (event.id, event.announce) == (event_id, None)
        await bench.plan()
        assert [event.id for event in await bench.store.feed(ACCOUNT, 0, 10)] == [event_id]

    async def test_one_jobs_events_come_in_order(self, bench: StoreBench) -> None:
        endpoint = await register(bench)
        job = await bench.admit()
        await plan_to(bench, endpoint)
        await bench.store.cancel(ACCOUNT, job.id)
        await plan_to(bench, endpoint)

        (first,) = await bench.take(10)
        assert await bench.store.settle_delivery(first, an_outcome("delivered", 200), DELIVERED)
        (second,) = await bench.take(10)

        assert (first.message.job_id, second.message.job_id) == (job.id, job.id)
        assert [first.message.type, second.message.type] == [
            "cad_generation.queued",
            "cad_generation.canceled",
        ]


async def register(bench: StoreBench, account: str = ACCOUNT, **fields: Any) -> Endpoint:
    """An endpoint that was not there before."""
    added = await bench.store.add_endpoint(a_new_endpoint(bench, account=account, **fields), MANY)
    assert added is not None
    return added


def a_new_endpoint(bench: StoreBench, **fields: Any) -> NewEndpoint:
    """One that may be registered."""
    endpoint: dict[str, Any] = {
        "id": new_id("ep"),
        "account": ACCOUNT,
        "url": URL,
        "signing": Signing.HMAC,
        "secrets": (a_secret(bench),),
    }
    return NewEndpoint(**(endpoint | fields))


def a_secret(bench: StoreBench, sealed: str = "sealed") -> SealedSecret:
    """A secret; a store does not ask what is in it."""
    return SealedSecret(sealed=sealed, created_at=bench.clock.now())


async def change(bench: StoreBench, endpoint: Endpoint, **values: Any) -> Endpoint:
    """The endpoint after a change."""
    changed = await bench.store.change_endpoint(ACCOUNT, endpoint.id, EndpointChange(values=values))
    assert changed is not None
    return changed


async def sent_to(bench: StoreBench, endpoint: Endpoint) -> tuple[str, str]:
    """A test that was asked for: the ids of its delivery and of its event."""
    found = await bench.store.test_endpoint(ACCOUNT, endpoint.id)
    assert found is not None
    return found


async def plan_to(bench: StoreBench, endpoint: Endpoint, *urls: str) -> int:
    """Fan out all that waits, of a fresh job if nothing does, to `endpoint` and `urls`."""
    events = await bench.store.unplanned(1000)
    if not events:
        await bench.admit()
        events = await bench.store.unplanned(1000)
    plans = [planned(event, *urls) for event in events]
    messages = [planned(event, URL).deliveries[0].message for event in events]
    return await bench.store.fan_out(
        [
            Planned(
                event_id=plan.event_id,
                deliveries=(
                    *plan.deliveries,
                    NewDelivery(id=new_id("dlv"), message=message, endpoint_id=endpoint.id),
                ),
            )
            for plan, message in zip(plans, messages, strict=True)
        ]
    )


async def _cannot_touch(bench: StoreBench, endpoint_id: str) -> None:
    store, change = bench.store, EndpointChange(values={"description": "mine"})
    assert await store.change_endpoint(ACCOUNT, endpoint_id, change) is None
    assert await store.rotate_endpoint(ACCOUNT, endpoint_id, a_secret(bench), 0.0) is None
    assert await store.pause_endpoint(ACCOUNT, endpoint_id) is None
    assert await store.resume_endpoint(ACCOUNT, endpoint_id) is None
    assert await store.test_endpoint(ACCOUNT, endpoint_id) is None
    assert not await store.remove_endpoint(ACCOUNT, endpoint_id)
