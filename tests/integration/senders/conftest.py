"""A hostile receiver, and senders that may call it."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tempa.adapters.senders.curl import CurlSender
from tempa.testing.receiver import Receiver
from tempa.webhooks.ports import Outbound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tempa.webhooks.ports import Answer

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


class Send(Protocol):
    """Posts a small JSON body to a path of the receiver, or to a whole URL."""

    async def __call__(self, target: str, by: CurlSender | None = None, **changes: Any) -> Answer: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
async def make_sender() -> AsyncIterator[Callable[..., CurlSender]]:
    """Makes senders that may call loopback (unless told otherwise) and closes them in the end."""
    made: list[CurlSender] = []

    def make(**settings: Any) -> CurlSender:
        usual: dict[str, Any] = {
            "allow_networks": LOOPBACK,
            "connect_timeout_seconds": 1.0,
            "body_seconds": 0.3,
        }
        made.append(CurlSender(**(usual | settings)))
        return made[-1]

    yield make
    for sender in made:
        await sender.close()


@pytest.fixture
async def sender(make_sender: Callable[..., CurlSender]) -> CurlSender:
    return make_sender()


@pytest.fixture
def send(sender: CurlSender, receiver: Receiver) -> Send:
    async def send_one(target: str, by: CurlSender | None = None, **changes: Any) -> Answer:
        fields: dict[str, Any] = {
            "url": target if "//" in target else receiver.url(target),
            "headers": (("Content-Type", "application/json"),),
            "body": b'{"id": "evt_1"}',
            "timeout_seconds": 5.0,
        }
        return await (by or sender).send(Outbound(**(fields | changes)))

    return send_one
