"""A kept connection that the receiver has closed meanwhile: one more try that costs nothing."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.senders.curl import CurlSender
from tempa.core.clock import SystemClock
from tempa.testing.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def sender() -> AsyncIterator[CurlSender]:
    sender = CurlSender([ip_network("127.0.0.0/8")])
    yield sender
    await sender.close()


async def test_the_free_try_is_no_attempt_and_spends_no_retry(
    open_any: Any, receiver: Receiver, sender: CurlSender
) -> None:
    post, url = await open_any(SystemClock()), receiver.url("/mute-reuse")
    async with post.delivering(sender):
        for count in (1, 2, 3):
            await post.announce(url)
            await post.until_over(count)

    for delivery in await post.deliveries():
        _, (attempt,) = await post.record(delivery.id)
        assert (attempt.outcome, attempt.http_status, attempt.error) == ("delivered", 200, None)
    turns = [(request.connection, request.turn) for request in receiver.requests]
    assert turns == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]  # each second turn was reset unheard
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert (ids[1], ids[3]) == (ids[2], ids[4])
    assert len(set(ids)) == 3


async def test_a_new_connection_that_is_reset_is_an_attempt_like_any_other(
    open_any: Any, receiver: Receiver, sender: CurlSender
) -> None:
    post, url = await open_any(SystemClock()), receiver.url("/hook")
    receiver.script("/hook", "/reset", "/ok")
    async with post.delivering(sender):
        await post.announce(url)
        await post.until_over(1)

    (delivery,) = await post.deliveries()
    _, attempts = await post.record(delivery.id)
    assert [(one.outcome, one.error) for one in attempts] == [("retry", "reset"), ("delivered", None)]
