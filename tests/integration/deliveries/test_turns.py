"""Of URLs that are met for the first time, whoever was named first has the first turn."""

from __future__ import annotations

from typing import Any

from tempa.testing.clock import ManualClock
from tempa.testing.contracts.samples import LEASE_SECONDS
from tempa.webhooks.room import Room

COUNT, FEW = 30, 5


async def test_new_urls_have_their_turns_in_the_order_in_which_they_were_planned(open_any: Any) -> None:
    """By chance one host of five gets all the room of 64 slots, and another one none: see test_hanging.py."""
    post = await open_any(ManualClock())
    urls = [f"https://h{number % 5}.example/{number}" for number in range(COUNT)]
    await post.announce(*urls)

    turns: list[str] = []
    for _ in range(0, COUNT, FEW):
        claim = await post.store.claim_deliveries(Room(10_000), FEW, LEASE_SECONDS)
        turns += [claimed.url for claimed in claim.taken]

    assert turns == urls
