"""Hundreds of receivers that hang, and deliveries that must not wait for them."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.senders.curl import CurlSender
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import OTHER_ACCOUNT
from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

HANGING = 200
HEALTHY = 20
PROMPT_SECONDS = 5.0  # on a busy machine; those that hang do so for the whole test
NEVER_SECONDS = 300.0


@pytest.fixture
def bad() -> Iterator[list[Receiver]]:
    """Receivers at five hosts whose `/half-open` takes a request and never answers."""
    with ExitStack() as stack:
        yield [stack.enter_context(Receiver(host=f"127.0.0.{number}")) for number in range(1, 6)]


@pytest.fixture
def good() -> Iterator[Receiver]:
    with Receiver(host="127.0.0.9") as receiver:
        yield receiver


@pytest.fixture
async def sender() -> AsyncIterator[CurlSender]:
    sender = CurlSender(allow_networks=[ip_network("127.0.0.0/8")])
    yield sender
    await sender.close()


async def arrive(receiver: Receiver, count: int, path: str | None = None) -> None:
    await asyncio.to_thread(receiver.wait_for, count, PROMPT_SECONDS, path)


@pytest.mark.parametrize("slots", [64, 1024])
@pytest.mark.parametrize("hosts", [1, 5])
async def test_healthy_deliveries_arrive_while_hundreds_hang(
    open_post: Any, bad: list[Receiver], good: Receiver, sender: CurlSender, slots: int, hosts: int
) -> None:
    post = await open_post(SystemClock())
    proven = [receiver.url("/ok") for receiver in bad]
    hanging = [bad[number % hosts].url(f"/half-open?{number}") for number in range(HANGING)]
    healthy = [good.url(f"/ok?{number}") for number in range(HEALTHY)]
    async with post.delivering(sender, in_flight_max=slots, timeout_seconds=NEVER_SECONDS) as stop:
        try:
            await post.announce(*proven)
            for receiver in bad:
                await arrive(receiver, 1)
            await post.announce(*hanging)
            for receiver in bad[:hosts]:
                await arrive(receiver, 1 + 3)  # even 64 slots are enough for three at each of five hosts

            await post.announce(*healthy)
            await arrive(good, HEALTHY)
            await post.announce(*healthy, account=OTHER_ACCOUNT)
            await arrive(good, 2 * HEALTHY)
            await post.announce(*proven)
            for receiver in bad:
                await arrive(receiver, 2, "/ok")

            counts = await post.store.delivery_counts()
            assert counts["leased"] + counts.get("pending", 0) >= HANGING
        finally:
            stop.set()
            for receiver in bad:
                receiver.close()  # which ends what hangs

    assert 3 * hosts <= sum(attempted(receiver) for receiver in bad) < slots


def attempted(receiver: Receiver) -> int:
    """How many hang there."""
    return sum(request.path.startswith("/half-open") for request in receiver.requests)
