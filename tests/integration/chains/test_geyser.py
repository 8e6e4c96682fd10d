"""A payment on the development chain is heard over its Geyser stream; what was cut is told again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography.x509 import IPAddress

from tempa.adapters.payments.geyser.source import GeyserSource
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.core.work import INBOX
from tempa.settlement.inbox import InboxState
from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.settlement.ports import Gap, GapReason, Pushed, Reached, Told
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.blocks import Commitment, Mode
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.geyser import GeyserServer
from tempa.testing.devchain.programs import associated_account
from tempa.testing.devchain.wallet import put_table
from tests.integration.chains.listening import PATIENCE_SECONDS, Ear, Sweeps, ear_at, listening
from tests.integration.senders.certificates import certificate

FINAL_SLOTS = 33


@pytest.fixture
async def geyser(chain: DevChain) -> AsyncIterator[GeyserServer]:
    async with GeyserServer(chain.nodes[0], ping_seconds=None) as geyser:
        yield geyser


@pytest.fixture
async def live() -> AsyncIterator[DevChain]:
    """Fifty slots a second, each final one later."""
    async with DevChain(mode=Mode.ALPENGLOW, slot_ms=20, ticking=True) as chain:
        yield chain


@pytest.fixture
async def wake() -> InProcessWake:
    return InProcessWake(SystemClock())


@pytest.fixture
async def store(tmp_path: Path, wake: InProcessWake) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=SystemClock(), wake=wake)
    yield store
    await store.close()


def accounts(chain: DevChain) -> list[str]:
    return [str(chain.treasury.key), str(associated_account(chain.treasury.key, chain.mint))]


def treasury_of(chain: DevChain) -> Treasury:
    wallet, account = accounts(chain)
    rows = (
        TreasuryAccount(asset=SOL, address=wallet, owner=wallet, program=None, decimals=9),
        TreasuryAccount(asset=str(chain.mint), address=account, owner=wallet, program="", decimals=6),
    )
    return Treasury(cluster=chain.cluster.genesis_hash, accounts=rows)


def pay_token(chain: DevChain, amount: int = 5) -> str:
    source, target = (associated_account(key, chain.mint) for key in (chain.payer.key, chain.treasury.key))
    return chain.payer.send(make.pay_checked(source, chain.mint, target, chain.payer.key, amount, 6))


def pay_sol(chain: DevChain, lamports: int = 5) -> str:
    return chain.payer.send(make.pay_sol(chain.payer.key, chain.treasury.key, lamports))


async def begun(ear: Ear, geyser: GeyserServer, chain: DevChain) -> None:
    """Until the stream says its first."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await geyser.subscribed.wait()
    chain.cluster.tick()
    assert await ear.next() == Gap(GapReason.CONNECTED)
    assert isinstance(await ear.next(), Reached)


def is_payment(told: Told) -> bool:
    return isinstance(told, Pushed)


async def test_a_payment_is_heard_and_in_the_inbox(
    live: DevChain, store: SqliteStore, wake: InProcessWake
) -> None:
    with wake.listen(INBOX) as bell:
        async with (
            GeyserServer(live.nodes[0]) as geyser,
            listening(GeyserSource(geyser.url), store, treasury_of(live), Sweeps()),
        ):
            signature = pay_token(live)
            assert await bell.wait(PATIENCE_SECONDS)
            (entry,) = await store.inbox_of(signature)
    assert (entry.source, entry.state) == ("geyser", InboxState.PENDING)


async def test_all_that_names_the_treasury_is_told_and_nothing_else(
    chain: DevChain, geyser: GeyserServer
) -> None:
    table = put_table(chain.cluster, [chain.treasury.key], "treasury")
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        payer, treasury = chain.payer, chain.treasury.key
        payer.send(make.pay_sol(payer.key, chain.faucet.wallet.key, 5))
        paid = [
            pay_token(chain),
            pay_sol(chain),
            payer.send(make.pay_sol(payer.key, treasury, 7), tables=[table]),  # only the table names it
            payer.send(make.pay_sol(payer.key, treasury, 10**18), skip_preflight=True),  # fails
        ]
        chain.cluster.tick(FINAL_SLOTS)
        heard = [await ear.until(is_payment) for _ in paid]
        await ear.until(lambda told: told == Reached(chain.cluster.block(Commitment.FINALIZED).slot))
    assert [told.signature for told in heard if isinstance(told, Pushed)] == paid
    assert sum(map(is_payment, ear.told)) == len(paid)


async def test_nothing_is_told_before_it_is_final(chain: DevChain, geyser: GeyserServer) -> None:
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        signature, slot = pay_sol(chain), chain.cluster.tip.slot
        chain.cluster.tick(31)
        before = await ear.until(lambda told: told == Reached(slot - 1))
        assert not any(map(is_payment, ear.told))
        assert before == Reached(chain.cluster.block(Commitment.FINALIZED).slot)
        chain.cluster.tick(1)
        told = await ear.next()
        assert isinstance(told, Pushed)
        assert (told.signature, told.slot) == (signature, slot)


async def test_pings_are_answered(chain: DevChain, geyser: GeyserServer) -> None:
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        for _ in range(3):
            geyser.ping()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await geyser.answered.wait()
        pay_sol(chain)
        chain.cluster.tick(FINAL_SLOTS)
        await ear.until(is_payment)  # the filters stand as they stood
    assert len(geyser.requests) == 1


async def test_a_stream_that_stalls_is_left_though_it_stands(chain: DevChain, geyser: GeyserServer) -> None:
    async with ear_at(GeyserSource(geyser.url, silence_seconds=0.3), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        geyser.stalled = True
        pay_sol(chain)
        chain.cluster.tick(FINAL_SLOTS)
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.SILENT
    assert not any(map(is_payment, ear.told))


async def test_pings_are_no_slots(chain: DevChain) -> None:
    async with (
        GeyserServer(chain.nodes[0], ping_seconds=0.01) as geyser,
        ear_at(GeyserSource(geyser.url, silence_seconds=0.3), accounts(chain)) as ear,
    ):
        await begun(ear, geyser, chain)
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.SILENT


async def test_a_stream_that_breaks_is_told_of(chain: DevChain, geyser: GeyserServer) -> None:
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        assert geyser.cut() == 1
        assert await ear.end() == Gap(GapReason.LOST, "UNAVAILABLE: the stream broke")


@pytest.mark.parametrize("fault", ["lose", "garble"])
async def test_updates_that_do_not_arrive_show_in_the_slots(
    chain: DevChain, geyser: GeyserServer, fault: str
) -> None:
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        pay_sol(chain)
        chain.cluster.tick(31)
        await ear.until(lambda told: told == Reached(chain.cluster.block(Commitment.FINALIZED).slot))
        setattr(geyser, fault, 4)  # the payment, and the three steps of slots that come with it
        chain.cluster.tick(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await geyser.disturbed.wait()
        chain.cluster.tick(1)
        assert isinstance(await ear.gap(GapReason.SKIPPED), Gap)
        assert not any(map(is_payment, ear.told))


async def test_what_happened_while_the_stream_was_cut_is_told_again(
    live: DevChain, store: SqliteStore, wake: InProcessWake
) -> None:
    with wake.listen(INBOX) as bell:
        async with (
            GeyserServer(live.nodes[0]) as geyser,
            listening(GeyserSource(geyser.url), store, treasury_of(live), Sweeps()),
        ):
            paid = []
            for amount in range(5, 10):
                geyser.cut()
                paid.append(pay_token(live, amount))  # the listener has not so much as noticed the cut
                while not await store.inbox_of(paid[-1]):
                    assert await bell.wait(PATIENCE_SECONDS)
    starts = [request.from_slot for request in geyser.requests]
    assert starts[0] is None
    assert all(start is not None for start in starts[1:])


async def test_a_slot_that_is_asked_for_is_told_from_its_first_transaction_on(
    chain: DevChain, geyser: GeyserServer
) -> None:
    chain.cluster.tick()
    paid, start = [pay_sol(chain), pay_token(chain)], chain.cluster.tip.slot
    chain.cluster.tick(40)
    async with ear_at(GeyserSource(geyser.url), accounts(chain), start) as ear:
        assert await ear.next() == Gap(GapReason.CONNECTED)
        heard = [await ear.until(is_payment) for _ in paid]
        assert isinstance(await ear.next(), Reached)
    assert [told.signature for told in heard if isinstance(told, Pushed)] == paid
    assert not any(isinstance(told, Gap) for told in ear.told[1:])


async def test_a_slot_that_the_server_has_forgotten_is_not_insisted_on(chain: DevChain) -> None:
    chain.cluster.tick(100)
    async with (
        GeyserServer(chain.nodes[0], ping_seconds=None, replay_slots=50) as geyser,
        ear_at(GeyserSource(geyser.url), accounts(chain), 1001) as ear,
    ):
        await begun(ear, geyser, chain)
    assert [request.from_slot for request in geyser.requests] == [1001, None]


async def test_a_token_opens_and_appears_nowhere(chain: DevChain, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with GeyserServer(chain.nodes[0], token="open sesame", ping_seconds=None) as geyser:
        keyed = geyser.url.replace("//", "//open%20sesame@")
        async with ear_at(GeyserSource(keyed), accounts(chain)) as ear:
            await begun(ear, geyser, chain)
        for url in (geyser.url, geyser.url.replace("//", "//wrong@")):
            async with ear_at(GeyserSource(url), accounts(chain), 1000) as ear:
                assert await ear.end() == Gap(GapReason.REFUSED, "UNAUTHENTICATED: No valid auth token")
    assert not any("sesame" in message for message in caplog.messages)
    assert len(geyser.requests) == 1  # a wrong token is no reason to try another slot


async def test_the_token_goes_to_whom_we_trust_and_to_nobody_else(chain: DevChain, tmp_path: Path) -> None:
    pem = certificate(tmp_path, IPAddress(ip_address("127.0.0.1"))).read_bytes()
    key, begin, rest = pem.partition(b"-----BEGIN CERTIFICATE-----")
    identity = (key, begin + rest)
    async with GeyserServer(
        chain.nodes[0], token="sesame", ping_seconds=None, certificate=identity
    ) as geyser:
        url = geyser.url.replace("//", "//sesame@")
        async with ear_at(GeyserSource(url, timeout_seconds=5.0), accounts(chain)) as ear:
            last = await ear.end()
        assert isinstance(last, Gap)
        assert last.reason is GapReason.REFUSED
        assert not geyser.requests
        async with ear_at(GeyserSource(url, roots_pem=identity[1]), accounts(chain)) as ear:
            await begun(ear, geyser, chain)


def test_a_token_that_no_header_can_carry_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="plain ASCII"):
        GeyserSource("https://s%C3%A9same@geyser.example:10000")


async def test_nobody_there_is_told_of_and_so_is_somebody_else(chain: DevChain, geyser: GeyserServer) -> None:
    encrypted = geyser.url.replace("http://", "https://")
    for url in ("http://127.0.0.1:1", chain.rpc_url(), encrypted):
        async with ear_at(GeyserSource(url.rstrip("/"), timeout_seconds=5.0), accounts(chain)) as ear:
            last = await ear.end()
        assert isinstance(last, Gap)
        assert last.reason is GapReason.REFUSED
        assert last.detail


async def test_a_server_that_takes_the_call_and_says_nothing_is_left(
    chain: DevChain, geyser: GeyserServer
) -> None:
    geyser.stalled = True
    async with ear_at(GeyserSource(geyser.url, timeout_seconds=0.3), accounts(chain)) as ear:
        assert await ear.end() == Gap(GapReason.REFUSED, "nobody answers in time")


async def test_a_message_that_is_too_large_ends_the_stream(chain: DevChain, geyser: GeyserServer) -> None:
    async with ear_at(GeyserSource(geyser.url, message_bytes_max=60), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        pay_sol(chain)
        chain.cluster.tick(FINAL_SLOTS)
        last = await ear.end()
    assert isinstance(last, Gap)
    assert last.reason is GapReason.LOST
    assert last.detail.startswith("RESOURCE_EXHAUSTED")


async def test_each_update_twice_is_one_row(live: DevChain, store: SqliteStore, wake: InProcessWake) -> None:
    with wake.listen(INBOX) as bell:
        async with GeyserServer(live.nodes[0]) as geyser:
            geyser.copies = 3
            async with listening(GeyserSource(geyser.url), store, treasury_of(live), Sweeps()):
                signature = pay_token(live)
                assert await bell.wait(PATIENCE_SECONDS)
        assert len(await store.inbox_of(signature)) == 1


async def test_a_payment_alone_that_is_lost_shows_nowhere_and_is_the_sweeps(
    chain: DevChain, geyser: GeyserServer
) -> None:
    """Why nothing may depend on a source: the slots are whole, and the payment is not told."""
    async with ear_at(GeyserSource(geyser.url), accounts(chain)) as ear:
        await begun(ear, geyser, chain)
        pay_sol(chain)
        chain.cluster.tick(31)
        await ear.until(lambda told: told == Reached(chain.cluster.block(Commitment.FINALIZED).slot))
        geyser.lose = 1
        chain.cluster.tick(3)
        await ear.until(lambda told: told == Reached(chain.cluster.block(Commitment.FINALIZED).slot))
    assert [told for told in ear.told if not isinstance(told, Reached)] == [Gap(GapReason.CONNECTED)]
