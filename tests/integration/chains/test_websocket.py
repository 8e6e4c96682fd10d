"""A payment on the development chain is heard over its node's WebSocket; what may be missed is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from tempa.adapters.payments.websocket import WebSocketSource
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core import base58
from tempa.core.clock import SystemClock
from tempa.core.work import INBOX
from tempa.settlement.inbox import InboxState
from tempa.settlement.model import Treasury
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached
from tempa.settlement.quorum import Held, Quorum, Rule
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.programs import associated_account
from tests.integration.chains.conftest import Connect
from tests.integration.chains.listening import (
    PATIENCE_SECONDS,
    Sweeps,
    ear_at,
    listening,
    logs_message,
    node_that,
    slot_message,
    subscribed,
)

FINAL_SLOTS = 33
ADDRESSES = ["11111111111111111111111111111111", "So11111111111111111111111111111111111111112"]


@pytest.fixture
async def wake() -> InProcessWake:
    return InProcessWake(SystemClock())


@pytest.fixture
async def store(tmp_path: Path, wake: InProcessWake) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=SystemClock(), wake=wake)
    yield store
    await store.close()


def addresses(treasury: Treasury) -> list[str]:
    return [account.address for account in treasury.accounts]


def pay_token(chain: DevChain, amount: int = 5) -> str:
    source, target = (associated_account(key, chain.mint) for key in (chain.payer.key, chain.treasury.key))
    transfer = make.pay_checked(source, chain.mint, target, chain.payer.key, amount, 6)
    return chain.payer.send(transfer)


def pay_sol(chain: DevChain, lamports: int = 5) -> str:
    return chain.payer.send(make.pay_sol(chain.payer.key, chain.treasury.key, lamports))


def some_signature(number: int) -> str:
    return base58.encode(Random(number).randbytes(64))


async def test_a_payment_is_heard_and_in_the_inbox(
    chain: DevChain, store: SqliteStore, wake: InProcessWake, treasury: Treasury
) -> None:
    with wake.listen(INBOX) as bell:
        async with listening(WebSocketSource(chain.ws_url()), store, treasury, Sweeps()):
            signature = pay_token(chain)
            chain.cluster.tick(FINAL_SLOTS)
            assert await bell.wait(PATIENCE_SECONDS)
            (entry,) = await store.inbox_of(signature)
    assert (entry.source, entry.state) == ("websocket", InboxState.PENDING)


async def test_each_account_of_the_treasury_is_listened_to_and_failures_too(
    chain: DevChain, treasury: Treasury
) -> None:
    async with ear_at(WebSocketSource(chain.ws_url()), addresses(treasury)) as ear:
        await ear.gap(GapReason.CONNECTED)
        paid = {pay_token(chain), pay_sol(chain)}
        too_much = make.pay_sol(chain.payer.key, chain.treasury.key, 10**18)
        paid.add(chain.payer.send(too_much, skip_preflight=True))
        chain.cluster.tick(FINAL_SLOTS)
        heard: set[str] = set()
        while heard != paid:
            told = await ear.until(lambda told: isinstance(told, Pushed))
            assert isinstance(told, Pushed)
            assert told.signature.encode() in told.raw
            heard.add(told.signature)


async def test_nothing_is_told_before_it_is_final(chain: DevChain, treasury: Treasury) -> None:
    async with ear_at(WebSocketSource(chain.ws_url()), addresses(treasury)) as ear:
        await ear.gap(GapReason.CONNECTED)
        signature, slot = pay_sol(chain), chain.cluster.tip.slot
        chain.cluster.tick(31)
        for _ in range(31):
            assert isinstance(await ear.next(), Reached)
        chain.cluster.tick(1)
        assert await ear.next() == Reached(slot)
        told = await ear.next()
        assert isinstance(told, Pushed)
        assert (told.signature, told.slot) == (signature, slot)


async def test_a_socket_that_stalls_is_left(chain: DevChain, treasury: Treasury) -> None:
    source = WebSocketSource(chain.ws_url(), silence_seconds=0.3)
    async with ear_at(source, addresses(treasury)) as ear:
        await ear.gap(GapReason.CONNECTED)
        chain.lines[0].stalled = True
        chain.cluster.tick(FINAL_SLOTS)
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.SILENT


async def test_after_a_stall_a_sweep_is_asked_for_and_payments_are_heard_again(
    chain: DevChain, store: SqliteStore, wake: InProcessWake, treasury: Treasury
) -> None:
    sweeps = Sweeps()
    source = WebSocketSource(chain.ws_url(), silence_seconds=0.3)
    with wake.listen(INBOX) as bell:
        async with listening(source, store, treasury, sweeps):
            chain.lines[0].stalled = True
            lost = pay_token(chain)
            chain.cluster.tick(FINAL_SLOTS)
            await sweeps.next()  # left
            chain.lines[0].stalled = False
            await sweeps.next()  # and listened to again
            heard = pay_token(chain, 6)
            while not await store.inbox_of(heard):
                chain.cluster.tick(FINAL_SLOTS)
                assert await bell.wait(PATIENCE_SECONDS)
            assert not await store.inbox_of(lost)  # the sweep's


async def test_a_connection_that_breaks_is_made_again_and_a_sweep_asked_for(
    chain: DevChain, store: SqliteStore, treasury: Treasury
) -> None:
    sweeps = Sweeps()
    async with listening(WebSocketSource(chain.ws_url()), store, treasury, sweeps):
        for count in (1, 2, 3):
            assert chain.lines[0].cut() == 1
            while chain.nodes[0].calls["logsSubscribe"] < 2 * (count + 1):
                await sweeps.next()


async def test_a_notification_that_was_lost_shows_in_the_slots(chain: DevChain, treasury: Treasury) -> None:
    async with ear_at(WebSocketSource(chain.ws_url()), addresses(treasury)) as ear:
        await ear.gap(GapReason.CONNECTED)
        chain.cluster.tick(2)
        for _ in range(2):
            assert isinstance(await ear.next(), Reached)
        chain.lines[0].stalled = True
        chain.cluster.tick(2)
        for _ in range(3):  # the node's own task, on this loop, drops them meanwhile
            await asyncio.sleep(0)
        chain.lines[0].stalled = False
        chain.cluster.tick(1)
        assert (await ear.gap(GapReason.SKIPPED)).reason is GapReason.SKIPPED


async def test_forks_and_skipped_slots_are_no_gaps(chain: DevChain, treasury: Treasury) -> None:
    async with ear_at(WebSocketSource(chain.ws_url()), addresses(treasury)) as ear:
        await ear.gap(GapReason.CONNECTED)
        chain.cluster.tick(3)
        for _ in range(3):
            assert isinstance(await ear.next(), Reached)
        chain.cluster.fork(chain.cluster.tip.slot - 2)
        chain.cluster.tick(2, skip=5)
        for _ in range(3):
            assert isinstance(await ear.next(), Reached)


async def test_each_notification_twice_is_one_row(
    chain: DevChain, store: SqliteStore, wake: InProcessWake, treasury: Treasury
) -> None:
    chain.lines[0].copies = 3
    with wake.listen(INBOX) as bell:
        async with listening(WebSocketSource(chain.ws_url()), store, treasury, Sweeps()):
            signature = pay_token(chain)
            chain.cluster.tick(FINAL_SLOTS)
            assert await bell.wait(PATIENCE_SECONDS)
        assert len(await store.inbox_of(signature)) == 1


GARBAGE: list[Any] = [
    "",
    "not json",
    b"\xff\xfe",
    "[" * 100_000,
    "[]",
    "null",
    "17",
    '{"method": 5}',
    '{"method": "logsNotification"}',
    '{"method": "logsNotification", "params": []}',
    '{"method": "slotNotification", "params": {"result": 7}}',
    '{"method": "rootNotification", "params": {"result": 7}}',
    '{"id": 99, "result": 1}',
    '{"id": {}, "result": 1}',
    '{"jsonrpc": "2.0", "result": 1}',
    logs_message(None),
    logs_message(7),
    logs_message("0" * 88),
    logs_message(["x"]),
    '{"method": "slotNotification", "params": {"result": {"slot": true, "parent": 1, "root": 1}}}',
    '{"method": "slotNotification", "params": {"result": {"slot": -4, "parent": 1, "root": 1}}}',
    '{"method": "slotNotification", "params": {"result": {"slot": 1e400, "parent": 1, "root": 1}}}',
    '{"method": "slotNotification", "params": {"result": {"slot": 36893488147419103232, "root": 1}}}',
]


async def test_garbage_between_payments_is_passed_over() -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        for message in GARBAGE:
            await connection.send(message)
        await connection.send(logs_message(some_signature(1), "soon"))
        await connection.wait_closed()

    async with node_that(converse) as url, ear_at(WebSocketSource(url), ADDRESSES) as ear:
        assert await ear.next() == Gap(GapReason.CONNECTED)
        told = await ear.next()
        assert isinstance(told, Pushed)
        assert (told.signature, told.slot) == (some_signature(1), None)


async def test_a_message_that_is_too_large_ends_the_connection() -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        await connection.send("x" * 2_000_000)
        await connection.wait_closed()

    async with node_that(converse) as url, ear_at(WebSocketSource(url), ADDRESSES) as ear:
        assert await ear.end() == Gap(GapReason.LOST, "the connection was closed (1009)")


async def test_a_flood_without_a_slot_is_a_silence() -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        while True:
            await connection.send(logs_message(some_signature(1)))

    async with (
        node_that(converse) as url,
        ear_at(WebSocketSource(url, silence_seconds=0.3), ADDRESSES) as ear,
    ):
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.SILENT


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ({ADDRESSES[0]}, GapReason.CONNECTED),  # better one than none
        (set(ADDRESSES), GapReason.REFUSED),
        ({"slotSubscribe"}, GapReason.REFUSED),  # nobody would see it stall
    ],
)
async def test_what_a_node_refuses_is_told_in_its_words(refused: set[str], reason: GapReason) -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection, frozenset(refused))
        await connection.send(slot_message(100))
        await connection.wait_closed()

    async with node_that(converse) as url, ear_at(WebSocketSource(url), ADDRESSES) as ear:
        begun = await ear.next()
        assert isinstance(begun, Gap)
        assert begun.reason is reason
        assert "too many subscriptions (-32602)" in begun.detail
        for address in refused & set(ADDRESSES):
            assert address in begun.detail
        if reason is GapReason.CONNECTED:
            assert await ear.next() == Reached(68)
        else:
            assert await ear.end() is begun


async def test_slots_do_not_make_up_for_a_subscription_that_is_not_answered() -> None:
    async def converse(connection: ServerConnection) -> None:
        await connection.send('{"jsonrpc": "2.0", "id": 0, "result": 1}')
        for slot in range(100, 10_000_000):
            await connection.send(slot_message(slot))

    async with (
        node_that(converse) as url,
        ear_at(WebSocketSource(url, timeout_seconds=2.0), ADDRESSES) as ear,
    ):
        last = await ear.end()
    assert last == Gap(GapReason.REFUSED, "2 subscriptions were not answered")


async def test_a_node_that_takes_no_connections_is_told_of_without_its_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def busy(connection: ServerConnection, request: Any) -> Any:
        return connection.respond(429, "slow down")

    async def converse(connection: ServerConnection) -> None:
        raise AssertionError("never opened")

    caplog.set_level(logging.DEBUG)
    async with (
        node_that(converse, process_request=busy) as url,
        ear_at(WebSocketSource(url), ADDRESSES) as ear,
    ):
        assert await ear.end() == Gap(GapReason.REFUSED, "the node answers HTTP 429")
    async with ear_at(WebSocketSource(url), ADDRESSES) as ear:  # nobody is there any more
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.REFUSED
    client = [line for line in caplog.messages if "sesame" in line and "< GET" not in line]
    assert "sesame" not in last.detail
    assert not client


async def test_a_connection_that_answers_no_ping_is_left() -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        connection.transport.pause_reading()  # half open
        for slot in range(100, 10_000_000):
            await connection.send(slot_message(slot))

    async with (
        node_that(converse, close_timeout=0.1) as url,
        ear_at(WebSocketSource(url, ping_seconds=0.2), ADDRESSES) as ear,
    ):
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.LOST


async def test_what_a_lying_node_tells_is_looked_up_and_buys_nothing(
    chain: DevChain, store: SqliteStore, wake: InProcessWake, treasury: Treasury, connect: Connect
) -> None:
    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        await connection.send(logs_message(some_signature(2)))
        await connection.wait_closed()

    with wake.listen(INBOX) as bell:
        async with node_that(converse) as url, listening(WebSocketSource(url), store, treasury, Sweeps()):
            assert await bell.wait(PATIENCE_SECONDS)
    (claim,) = await store.claim_inbox(10, 60.0)
    quorum = Quorum([connect(0), connect(1)], treasury, Rule())
    await quorum.look()
    outcome = await quorum.check(claim.signature)
    assert isinstance(outcome, Held)
    assert await store.receipts(0, 10) == []


async def test_a_flood_of_payments_is_all_in_the_inbox(
    store: SqliteStore, wake: InProcessWake, treasury: Treasury
) -> None:
    paid = [some_signature(number) for number in range(5000)]

    async def converse(connection: ServerConnection) -> None:
        await subscribed(connection)
        for at, signature in enumerate(paid):
            await connection.send(logs_message(signature))
            if at % 500 == 0:
                await connection.send(slot_message(100 + at // 500))
        await connection.wait_closed()

    with wake.listen(INBOX) as bell:
        async with node_that(converse) as url, listening(WebSocketSource(url), store, treasury, Sweeps()):
            while (await store.pending_lookups())[0] < len(paid):
                assert await bell.wait(PATIENCE_SECONDS)
