"""Contract of `WebhookStore` for people: lists, dead letters, re-drive, discard, pruning."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.core.work import DELIVERIES
from tempa.testing.contracts.bench import planned
from tempa.testing.contracts.samples import (
    ACCOUNT,
    DELIVERED,
    EXHAUSTED,
    OTHER_ACCOUNT,
    REFUSED,
    an_outcome,
    pending,
)
from tempa.webhooks.model import DeadFilter, DeadReason, DeliveryStatus

if TYPE_CHECKING:
    from tempa.testing.contracts.bench import StoreBench
    from tempa.webhooks.model import Delivery, Next

URL = "https://hooks.example/a?x=1&y=%22"
OTHER_URL = "https://hooks.example/b"


class DeliveryListContract:
    """What people see of deliveries."""

    async def test_a_list_pages_through_all_newest_first(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 5)
        await bench.deliveries_to(URL, account=OTHER_ACCOUNT)

        pages: list[str] = []
        while page := await _list(bench, limit=2, before=pages[-1] if pages else None):
            pages += [delivery.id for delivery in page]

        assert pages == made[::-1]

    async def test_a_list_is_in_the_order_in_which_they_were_made_whatever_their_ids(
        self, bench: StoreBench
    ) -> None:
        """Ids tell the time, and clocks are set back."""
        made = []
        for day in ("3", "1", "2"):
            await bench.admit()
            (event,) = await bench.store.unplanned(10)
            plan = planned(event, URL)
            delivery = replace(plan.deliveries[0], id=f"dlv_0{day}000000000000000000000000")
            await bench.store.fan_out([replace(plan, deliveries=(delivery,))])
            made.append(delivery.id)

        assert [one.id for one in await _list(bench)] == made[::-1]
        assert [one.id for one in await _list(bench, before=made[2])] == made[1::-1]
        assert [one.id for one in await _list(bench, before=made[1])] == made[:1]

    async def test_a_page_goes_on_though_its_last_delivery_was_pruned(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 4)
        page = await _list(bench, limit=2)
        await _end(bench, 2, pending(60.0))
        await _end(bench, 1, DELIVERED)  # the third, with which the page ended
        bench.clock.advance(1.0)
        assert await bench.store.prune_deliveries(bench.clock.now(), 10) == 1

        assert page[-1].id == made[2]
        assert [one.id for one in await _list(bench, before=page[-1].id)] == made[1::-1]

    async def test_a_list_narrows_by_every_condition(self, bench: StoreBench) -> None:
        first, second = await bench.deliveries_to(URL), await bench.deliveries_to(OTHER_URL)
        await _end(bench, 1, DELIVERED)
        here, there = await _one(bench, first[0]), await _one(bench, second[0])

        assert [one.id for one in await _list(bench, status=DeliveryStatus.DELIVERED)] == first
        assert [one.id for one in await _list(bench, status=DeliveryStatus.PENDING)] == second
        assert [one.id for one in await _list(bench, job_id=there.job_id)] == second
        assert [one.id for one in await _list(bench, endpoint_id=here.endpoint_id)] == first
        assert await _list(bench, job_id=there.job_id, status=DeliveryStatus.DEAD) == []

    async def test_a_delivery_is_seen_by_its_account_only(self, bench: StoreBench) -> None:
        (made,) = await bench.deliveries_to(URL)

        assert await bench.store.delivery(OTHER_ACCOUNT, made) is None
        assert await bench.store.delivery(ACCOUNT, "dlv_00000000000000000000000000") is None

    async def test_counts_tell_what_is_not_over_and_what_is_dead(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 4)
        await _end(bench, 1, DELIVERED)
        await _end(bench, 1, EXHAUSTED)
        await bench.take(1)

        assert await bench.store.delivery_counts() == {"pending": 1, "leased": 1, "dead": 1}


class DeadLetterContract:
    """Groups of dead letters, and which of them are meant."""

    async def test_groups_are_by_url_and_reason_with_the_last_answer(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL, 3)
        oldest = bench.clock.now()
        await _end(bench, 1, EXHAUSTED, 500)
        bench.clock.advance(60.0)
        await _end(bench, 1, EXHAUSTED, None, "connect_timeout")
        await _end(bench, 1, REFUSED, 410)
        await bench.deliveries_to(OTHER_URL)
        await _end(bench, 1, REFUSED, 404)

        groups = {(group.url, group.reason): group for group in await bench.store.dead_groups(ACCOUNT)}
        exhausted = groups[URL, DeadReason.EXHAUSTED]
        assert (exhausted.count, exhausted.oldest, exhausted.newest) == (2, oldest, bench.clock.now())
        assert (exhausted.last_http_status, exhausted.last_error) == (None, "connect_timeout")
        assert groups[URL, DeadReason.REFUSED].last_http_status == 410
        assert groups[OTHER_URL, DeadReason.REFUSED].last_http_status == 404
        assert len(groups) == len({group.id for group in groups.values()}) == 3
        assert await bench.store.dead_groups(OTHER_ACCOUNT) == []

    async def test_a_filter_means_what_all_its_conditions_hold_for(self, bench: StoreBench) -> None:
        first, second = await bench.deliveries_to(URL, 2)
        await _end(bench, 1, EXHAUSTED)
        bench.clock.advance(60.0)
        since = bench.clock.now()
        await _end(bench, 1, REFUSED)
        (third,) = await bench.deliveries_to(OTHER_URL)
        await _end(bench, 1, REFUSED)
        group = next(
            group.id
            for group in await bench.store.dead_groups(ACCOUNT)
            if (group.url, group.reason) == (URL, DeadReason.REFUSED)
        )
        endpoint = (await _one(bench, first)).endpoint_id

        assert await _meant(bench, DeadFilter(delivery_ids=(first, third))) == [third, first]
        assert await _meant(bench, DeadFilter(endpoint_id=endpoint)) == [second, first]
        assert await _meant(bench, DeadFilter(group=group)) == [second]
        assert await _meant(bench, DeadFilter(since=since)) == [third, second]
        assert await _meant(bench, DeadFilter(since=since, endpoint_id=endpoint)) == [second]
        assert await _meant(bench, DeadFilter(delivery_ids=(first,), group=group)) == []

    async def test_dead_letters_come_in_pages_newest_first(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 3)
        await _end(bench, 3, EXHAUSTED)
        which = DeadFilter(delivery_ids=tuple(made))

        first = await bench.store.dead_letters(ACCOUNT, which, 2, None)
        rest = await bench.store.dead_letters(ACCOUNT, which, 2, first[-1].id)

        assert [one.id for one in first + rest] == made[::-1]

    async def test_an_empty_filter_means_nothing(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        await _end(bench, 1, EXHAUSTED)

        assert await _meant(bench, DeadFilter()) == []
        assert await bench.store.redrive(ACCOUNT, DeadFilter(), 0.0) == 0
        assert await bench.store.discard(ACCOUNT, DeadFilter(), "slip") == 0
        assert await bench.store.delivery_counts() == {"dead": 1}

    async def test_nobody_touches_another_accounts_dead(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL)
        await _end(bench, 1, EXHAUSTED)
        which = DeadFilter(delivery_ids=tuple(made))

        assert await bench.store.count_dead(OTHER_ACCOUNT, which) == 0
        assert await bench.store.redrive(OTHER_ACCOUNT, which, 0.0) == 0
        assert await bench.store.discard(OTHER_ACCOUNT, which, "not mine") == 0
        assert await bench.store.delivery_counts() == {"dead": 1}

    async def test_only_the_dead_are_driven_again_or_let_go(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 3)
        await _end(bench, 1, DELIVERED)
        await bench.take(1)
        which = DeadFilter(delivery_ids=tuple(made))

        assert await bench.store.redrive(ACCOUNT, which, 0.0) == 0
        assert await bench.store.discard(ACCOUNT, which, "no") == 0
        assert await bench.store.delivery_counts() == {"leased": 1, "pending": 1}


class RedriveContract:
    """A new round for the dead."""

    async def test_a_redrive_is_a_new_round_that_goes_on_counting(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL)
        await _end(bench, 1, pending())
        await _end(bench, 1, EXHAUSTED)
        bench.clock.advance(3600.0)

        async with bench.expect_ring(DELIVERIES):
            assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=tuple(made)), 0.0) == 1

        delivery = await _one(bench, made[0])
        assert (delivery.status, delivery.reason, delivery.finished_at) == (
            DeliveryStatus.PENDING,
            None,
            None,
        )
        assert delivery.next_attempt_at == bench.clock.now()
        (claimed,) = await bench.take()
        assert (claimed.id, claimed.attempt, claimed.retries_spent) == (made[0], 3, 0)
        assert await bench.store.dead_groups(ACCOUNT) == []

    async def test_two_redrives_in_a_row_each_send_once(self, bench: StoreBench) -> None:
        (made,) = await bench.deliveries_to(URL)
        await _end(bench, 1, REFUSED)
        which = DeadFilter(delivery_ids=(made,))
        attempts = []
        for _ in range(2):
            assert await bench.store.redrive(ACCOUNT, which, 0.0) == 1
            assert await bench.store.redrive(ACCOUNT, which, 0.0) == 0
            (claimed,) = await bench.take(10)
            attempts.append(claimed.attempt)
            await bench.store.settle_delivery(claimed, an_outcome("x", 404), REFUSED)

        assert attempts == [2, 3]
        assert await bench.take(10) == []

    async def test_a_redrive_is_paced_oldest_first(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 4)
        await _end(bench, 4, REFUSED)
        bench.clock.advance(60.0)
        now = bench.clock.now()

        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=tuple(made)), 0.5) == 4

        due = [(await _one(bench, ident)).next_attempt_at for ident in made]
        assert due == [now + timedelta(seconds=0.5 * place) for place in range(4)]

    async def test_a_discard_lets_go_with_a_reason(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 2)
        await _end(bench, 2, EXHAUSTED)
        bench.clock.advance(60.0)

        assert (
            await bench.store.discard(ACCOUNT, DeadFilter(delivery_ids=(made[0],)), "receiver is gone") == 1
        )

        delivery = await _one(bench, made[0])
        assert (delivery.status, delivery.finished_at) == (DeliveryStatus.CANCELED, bench.clock.now())
        assert (delivery.reason, delivery.discard_reason) == (DeadReason.EXHAUSTED, "receiver is gone")
        assert await bench.store.redrive(ACCOUNT, DeadFilter(delivery_ids=tuple(made)), 0.0) == 1
        assert (await _one(bench, made[0])).status is DeliveryStatus.CANCELED


class PruneContract:
    """What is finished goes when its time has come; nothing else does."""

    async def test_only_the_finished_go_the_earliest_first(self, bench: StoreBench) -> None:
        made = await bench.deliveries_to(URL, 4)
        for ending in (DELIVERED, EXHAUSTED, pending()):
            await _end(bench, 1, ending)
            bench.clock.advance(1.0)
        before = bench.clock.now()
        await _end(bench, 1, DELIVERED)

        assert await bench.store.prune_deliveries(before, 1) == 1
        assert await bench.store.delivery(ACCOUNT, made[0]) is None
        assert await bench.store.prune_deliveries(before, 10) == 1
        assert await bench.store.prune_deliveries(before, 10) == 0
        assert [one.id for one in await _list(bench)] == [made[3], made[2]]

    async def test_an_endpoint_serves_on_after_its_last_delivery_was_pruned(self, bench: StoreBench) -> None:
        await bench.deliveries_to(URL)
        await _end(bench, 1, DELIVERED)
        bench.clock.advance(1.0)
        assert await bench.store.prune_deliveries(bench.clock.now(), 10) == 1

        (made,) = await bench.deliveries_to(URL)
        (claimed,) = await bench.take()

        assert (claimed.id, claimed.url) == (made, URL)


async def _end(
    bench: StoreBench, count: int, then: Next, http_status: int | None = 503, error: str | None = None
) -> None:
    """Claim `count` deliveries and let them end so."""
    taken = await bench.take(count)
    assert len(taken) == count
    for claimed in taken:
        assert await bench.store.settle_delivery(claimed, an_outcome("x", http_status, error), then)


async def _list(bench: StoreBench, **narrow: Any) -> list[Delivery]:
    plain = {"status": None, "job_id": None, "endpoint_id": None, "limit": 100, "before": None}
    return await bench.store.deliveries(ACCOUNT, **(plain | narrow))


async def _one(bench: StoreBench, delivery_id: str) -> Delivery:
    found = await bench.store.delivery(ACCOUNT, delivery_id)
    assert found is not None
    return found[0]


async def _meant(bench: StoreBench, which: DeadFilter) -> list[str]:
    letters = await bench.store.dead_letters(ACCOUNT, which, 100, None)
    assert await bench.store.count_dead(ACCOUNT, which) == len(letters)
    return [letter.id for letter in letters]
