"""Providers' webhooks over real sockets: each with its provider's patience."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest

from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.couriers import Courier, Hook
from tempa.testing.devchain.instructions import memo, pay_sol
from tempa.testing.receiver import Received, Receiver

PATIENCE_SECONDS = 10.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as listening:
        yield listening


@pytest.fixture
async def chain() -> AsyncIterator[DevChain]:
    async with DevChain() as running:
        yield running


def hook(receiver: Receiver, **changed: Any) -> Hook:
    told = {"url": receiver.url("/hook"), "source": "helius-raw", "secret": "s3cret", "pause_seconds": 0.0}
    return Hook(**{**told, "commitment": Commitment.PROCESSED, **changed})


def pay_treasury(chain: DevChain, lamports: int) -> str:
    return chain.payer.send(memo(str(lamports)), pay_sol(chain.payer.key, chain.treasury.key, lamports))


async def got(receiver: Receiver, count: int) -> list[Received]:
    return await asyncio.to_thread(partial(receiver.wait_for, count, PATIENCE_SECONDS))


async def idle(courier: Courier) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await courier.is_idle.wait()


def signatures(request: Received) -> list[str]:
    return [entry["transaction"]["signatures"][0] for entry in json.loads(request.body)]


async def test_what_lands_is_posted_and_what_is_not_watched_is_not(
    chain: DevChain, receiver: Receiver
) -> None:
    courier = chain.post_to(hook(receiver, addresses=(str(chain.treasury.key),)))
    chain.payer.send(pay_sol(chain.payer.key, chain.faucet.wallet.key, 5))
    paid = [pay_treasury(chain, lamports) for lamports in (1, 2)]
    (request,) = await got(receiver, 1)
    await idle(courier)

    assert signatures(request) == paid
    assert request.headers["authorization"] == "s3cret"
    assert [(parcel.statuses, parcel.accepted) for parcel in courier.parcels] == [([200], True)]


async def test_helius_gives_up_after_three_retries_and_the_payment_is_lost(
    chain: DevChain, receiver: Receiver
) -> None:
    receiver.script("/hook", "/status/500")
    courier = chain.post_to(hook(receiver))
    pay_treasury(chain, 1)
    await got(receiver, 4)
    await idle(courier)

    assert [parcel.statuses for parcel in courier.parcels] == [[500] * 4]
    assert not courier.parcels[0].accepted


async def test_helius_never_retries_a_403(chain: DevChain, receiver: Receiver) -> None:
    receiver.script("/hook", "/status/403", "/ok")
    courier = chain.post_to(hook(receiver))
    pay_treasury(chain, 1)
    await got(receiver, 1)
    await idle(courier)

    assert [parcel.statuses for parcel in courier.parcels] == [[403]]


async def test_a_stream_holds_back_what_follows(chain: DevChain, receiver: Receiver) -> None:
    receiver.script("/hook", *["/status/503"] * 6, "/ok")
    courier = chain.post_to(hook(receiver, source="quicknode", batch=1))
    paid = [pay_treasury(chain, lamports) for lamports in (1, 2)]
    requests = await got(receiver, 8)
    await idle(courier)

    sent = [json.loads(request.body)["data"][0]["transaction"]["signatures"][0] for request in requests]
    assert sent == [paid[0]] * 7 + [paid[1]]
    nonces = {request.headers["x-qn-nonce"] for request in requests}
    assert len(nonces) == 2  # a retry is the same request


async def test_copies_and_losses_are_made_on_demand(chain: DevChain, receiver: Receiver) -> None:
    courier = chain.post_to(hook(receiver, copies=3, lose=1, batch=1))
    lost, sent = pay_treasury(chain, 1), pay_treasury(chain, 2)
    requests = await got(receiver, 3)
    await idle(courier)

    assert [signatures(request) for request in requests] == [[sent]] * 3
    assert [(parcel.signatures, parcel.statuses) for parcel in courier.parcels] == [
        ([lost], []),
        ([sent], [200] * 3),
    ]


async def test_nobody_there_is_no_status(chain: DevChain, receiver: Receiver) -> None:
    receiver.close()
    courier = chain.post_to(hook(receiver, retries=1))
    pay_treasury(chain, 1)
    await idle(courier)

    assert [parcel.statuses for parcel in courier.parcels] == [[None, None]]
