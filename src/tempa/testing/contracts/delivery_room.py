"""Contract of `WebhookStore` for room: whoever hangs takes a part of it, and hides nobody behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.testing.contracts.delivery_steps import settle
from tempa.testing.contracts.samples import ACCOUNT, DELIVERED, LEASE_SECONDS, OTHER_ACCOUNT, pending
from tempa.webhooks.room import SLOW_SECONDS, Room, host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.testing.contracts.bench import StoreBench

CROWD = 60  # more than any claim below takes, and than any room admits
SLOW_MS = round(SLOW_SECONDS * 1000) + 1


class DeliveryRoomContract:
    """Each claim gives the room of its deliverer; what is taken enters it there."""

    async def test_the_room_given_stays_as_it_is(self, bench: StoreBench) -> None:
        room = Room(16)
        await _announce(bench, _urls("a.example", 3))

        await bench.store.claim_deliveries(room, 10, LEASE_SECONDS)

        assert room.free == 16

    @pytest.mark.parametrize(
        ("duration_ms", "at_one_host", "at_many"),
        [(None, 4, 6), (41, 6, 8), (SLOW_MS - 1, 6, 8), (SLOW_MS, 2, 4)],
    )
    async def test_what_is_taken_depends_on_how_long_the_latest_attempts_took(
        self, bench: StoreBench, duration_ms: int | None, at_one_host: int, at_many: int
    ) -> None:
        """Of 16 slots: weight * (account's + host's) < free, counted by hand."""
        one, many = _urls("one.example", 20), [f"https://h{number}.example/" for number in range(20)]
        for urls in (one, many):
            if duration_ms is not None:
                await _attempt(bench, urls, duration_ms)

        await _announce(bench, one)
        assert len(await _fill(bench, Room(16))) == at_one_host
        await _deliver_all(bench)
        await _announce(bench, many)
        assert len(await _fill(bench, Room(16))) == at_many

    async def test_a_crowd_at_one_host_hides_no_other_host(self, bench: StoreBench) -> None:
        room = Room(16)
        await _announce(bench, _urls("crowded.example", CROWD))
        await _fill(bench, room)
        await _announce(bench, ["https://other.example/"])

        assert await _fill(bench, room) == ["https://other.example/"]

    async def test_a_crowd_at_one_host_hides_no_quick_endpoint_of_that_host(self, bench: StoreBench) -> None:
        room, quick = Room(16), "https://crowded.example/quick"
        await _attempt(bench, [quick], 41)
        await _announce(bench, _urls("crowded.example", CROWD))
        await _fill(bench, room)
        await _announce(bench, [quick])

        assert await _fill(bench, room) == [quick]

    async def test_a_crowd_of_slow_ones_hides_no_new_endpoint(self, bench: StoreBench) -> None:
        room, slow = Room(32), _urls("crowded.example", CROWD)
        await _attempt(bench, slow, SLOW_MS)
        await _announce(bench, slow)
        await _fill(bench, room)
        new = ["https://crowded.example/new", "https://other.example/new"]
        await _announce(bench, new)

        assert await _fill(bench, room) == new

    async def test_with_the_first_that_hangs_its_untried_host_mates_are_expected_to(
        self, bench: StoreBench
    ) -> None:
        room, new = Room(16), "https://crowded.example/new"
        await _announce(bench, _urls("crowded.example", CROWD))
        await _hang_once(bench)

        assert len(await _fill(bench, room)) == 2  # as slow ones; as new ones they would be 4
        await _announce(bench, [new])
        assert await _fill(bench, room) == [new]

    async def test_nobody_at_another_host_or_of_another_account_is(self, bench: StoreBench) -> None:
        await _announce(bench, _urls("crowded.example", 1))
        await _announce(bench, _urls("other.example", CROWD))
        await _hang_once(bench)
        assert len(await _fill(bench, Room(16))) == 4

        await _deliver_all(bench)
        await _announce(bench, _urls("crowded.example", CROWD), OTHER_ACCOUNT)
        assert len(await _fill(bench, Room(16))) == 4

    async def test_a_crowd_of_hosts_hides_no_other_account(self, bench: StoreBench) -> None:
        room = Room(16)
        await _announce(bench, [f"https://h{number}.example/" for number in range(CROWD)])
        await _fill(bench, room)
        await _announce(bench, ["https://h0.example/"], OTHER_ACCOUNT)

        assert await _fill(bench, room) == ["https://h0.example/"]

    async def test_accounts_take_turns(self, bench: StoreBench) -> None:
        await _announce(bench, [f"https://h{number}.example/" for number in range(CROWD)])
        await _announce(bench, ["https://h0.example/"], OTHER_ACCOUNT)

        claim = await bench.store.claim_deliveries(Room(1000), 2, LEASE_SECONDS)

        assert {claimed.message.account for claimed in claim.taken} == {ACCOUNT, OTHER_ACCOUNT}

    async def test_a_place_that_is_left_is_taken_again(self, bench: StoreBench) -> None:
        room = Room(16)
        await _announce(bench, _urls("crowded.example", CROWD))
        held = len(await _fill(bench, room))
        room.leave(ACCOUNT, "crowded.example")

        assert len(await _fill(bench, room)) == 1
        assert held == 4


def _urls(host: str, count: int) -> list[str]:
    return [f"https://{host}/{number}" for number in range(count)]


async def _announce(bench: StoreBench, urls: Sequence[str], account: str = ACCOUNT) -> None:
    """One event to each of `urls`."""
    await bench.plan()
    await bench.admit(account=account)
    assert await bench.plan(*urls) == len(urls)


async def _attempt(bench: StoreBench, urls: Sequence[str], duration_ms: int) -> None:
    """A delivery to each, whose last attempt took so long, and the one before it not; none is left."""
    await _announce(bench, urls)
    for claimed in await bench.take(len(urls)):
        await settle(bench, claimed, pending(), duration_ms=SLOW_MS if duration_ms < SLOW_MS else 41)
    for claimed in await bench.take(len(urls)):
        assert await settle(bench, claimed, DELIVERED, duration_ms=duration_ms)


async def _hang_once(bench: StoreBench) -> None:
    """The first delivery in the line takes long."""
    (claimed,) = await bench.take(1)
    assert await settle(bench, claimed, DELIVERED, duration_ms=SLOW_MS)


async def _deliver_all(bench: StoreBench) -> None:
    """All that is pending or under way is delivered, and quickly."""
    await bench.store.void_delivery_leases()
    for claimed in await bench.take(1000):
        await settle(bench, claimed, DELIVERED)


async def _fill(bench: StoreBench, room: Room) -> list[str]:
    """The URLs that claims of a few at a time take until they take nothing; each enters the room."""
    urls = []
    while taken := (await bench.store.claim_deliveries(room, 4, LEASE_SECONDS)).taken:
        for claimed in taken:
            room.enter(claimed.message.account, host_of(claimed.url))
            urls.append(claimed.url)
    return urls
