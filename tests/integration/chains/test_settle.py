"""Payments on a real chain become rental time, once; what cannot be decided waits where people see it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from tempa.core.clock import SystemClock
from tempa.settlement.inbox import InboxState
from tempa.settlement.lookup import Patience
from tempa.settlement.model import SOL, QuoteStatus
from tempa.settlement.watch import ListedMint
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.till import FINAL_SLOTS, SECOND, Till

if TYPE_CHECKING:
    from tempa.testing.devchain.chain import DevChain


async def test_a_payment_in_each_asset_buys_its_seconds(till: Till) -> None:
    async with till.settling() as outcomes:
        for asset in (SOL, str(till.chain.mint)):
            quote = await till.quote(90, asset)
            await till.hear(till.pay(quote))

            assert await outcomes.next() == "credited"
            paid = await till.again(quote)
            assert (paid.status, paid.granted_seconds) == (QuoteStatus.CREDITED, 90)
            instance = await till.store.instance(quote.offer.gpu_instance_id)
            assert instance is not None
            assert instance.rental is not None
            left = instance.rental.expires_at - SystemClock().now()
            assert timedelta(seconds=85) < left <= timedelta(seconds=90)


async def test_one_signature_from_64_mouths_is_credited_once(till: Till) -> None:
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        signature = till.pay(quote)
        async with asyncio.TaskGroup() as group:
            for number in range(64):
                group.create_task(till.hear(signature, source=f"source-{number % 4}"))

        assert await outcomes.next() == "credited"
        await till.hear(signature)  # and once more when it is over

    paid = await till.again(quote)
    assert (paid.granted_seconds, paid.paid) == (30, 30 * SECOND)
    assert len(await till.store.receipts_of(signature)) == 1
    assert {entry.state for entry in await till.store.inbox_of(signature)} == {InboxState.CREDITED}


async def test_what_is_not_final_waits_and_is_shown_after_a_while(till: Till) -> None:
    till.settler.patience = Patience(not_found_after_seconds=0.0)
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        signature = till.pay(quote, final=False)
        await till.hear(signature)

        assert await outcomes.next() == "not_found_yet"
        assert await till.reasons() == ["not_found_yet"]
        till.chain.cluster.tick(FINAL_SLOTS)
        while (outcome := await outcomes.next()) == "not_found_yet":
            pass

        assert outcome == "credited"
        assert await till.reasons() == []
        assert (await till.again(quote)).granted_seconds == 30


async def test_troubles_of_nodes_are_outlasted_then_shown(till: Till) -> None:
    till.settler.patience = Patience(transient_retries=2, base_seconds=0.01)
    quote_seconds = 30
    async with till.settling() as outcomes:
        quote = await till.quote(quote_seconds)
        for node in till.chain.nodes:
            node.faults["getTransaction"] = [Fault("garbage", times=None)]
        await till.hear(till.pay(quote))

        for _ in range(2):
            assert await outcomes.next() == "answer_unreadable"
            assert await till.reasons() == []
        assert await outcomes.next() == "answer_unreadable"
        assert await till.reasons() == ["answer_unreadable"]
        for node in till.chain.nodes:
            node.faults.clear()
        (anomaly,) = await till.store.anomalies(10, None)
        await till.store.redrive_anomaly(anomaly.id, till.settler.terms)

        assert await outcomes.next() == "credited"
        assert await till.reasons() == []


async def test_a_liar_brings_a_payment_before_people_and_no_money_in(till: Till) -> None:
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        till.chain.nodes[0].faults["getTransaction"] = [Fault("amount", times=None, amount=1_000_000)]
        await till.hear(till.pay(quote))

        assert await outcomes.next() == "nodes_disagree"
        (anomaly,) = await till.store.anomalies(10, None)
        assert anomaly.detail == "nodes: node 0, node 1"
        assert (await till.again(quote)).granted_seconds == 0


async def test_a_fault_of_ours_in_one_lookup_keeps_no_other_waiting(till: Till) -> None:
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        broken, good = till.pay_nobody(5_000), till.pay(quote)
        check = till.quorum.check

        async def breaks(signature: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
            if signature == broken:
                raise ZeroDivisionError
            return await check(signature)

        till.quorum.check = breaks  # type: ignore[method-assign]
        await till.hear(broken, good)

        assert {await outcomes.next(), await outcomes.next()} == {"lookup_failed", "credited"}
        assert (await till.again(quote)).granted_seconds == 30


async def test_money_that_cannot_be_posted_stands_where_a_person_sees_it(till: Till) -> None:
    till.settler.patience = Patience(transient_retries=0)
    post = till.store.post_credits

    async def breaks(proven: object) -> object:
        raise OverflowError

    async with till.settling() as outcomes:
        quote = await till.quote(30)
        till.store.post_credits = breaks  # type: ignore[method-assign, assignment]
        await till.hear(till.pay(quote))
        assert await outcomes.next() == "lookup_failed"
        assert await till.reasons() == ["lookup_failed"]

        till.store.post_credits = post  # type: ignore[method-assign]
        (anomaly,) = await till.store.anomalies(10, None)
        await till.store.redrive_anomaly(anomaly.id, till.settler.terms)
        assert await outcomes.next() == "credited"
        assert await till.reasons() == []


async def test_money_that_is_nobodys_waits_in_suspense(till: Till) -> None:
    async with till.settling() as outcomes:
        await till.hear(till.pay_nobody(5_000))

        assert await outcomes.next() == "suspended"
        assert await till.reasons() == ["no_reference"]


async def test_nothing_is_looked_up_while_the_treasury_is_not_known(till: Till) -> None:
    for node in till.chain.nodes:
        node.faults["*"] = [Fault("http", times=None, status=503)]
    async with till.settling() as outcomes:
        assert till.watch.treasury is None
        await till.hear(till.pay_nobody(5_000))
        assert outcomes.queue.empty()
        for node in till.chain.nodes:
            node.faults.clear()
        await till.watch.look()

        assert await outcomes.next() == "suspended"


async def test_a_new_treasury_account_opens_with_its_first_payment(chain: DevChain, till: Till) -> None:
    mint = chain.payer.mint("eur", decimals=2)
    chain.payer.give(mint, chain.payer.key, 1_000_000)
    chain.cluster.tick(FINAL_SLOTS)
    till.watch.mints = [ListedMint(mint=str(mint))]
    async with till.settling() as outcomes:
        assert till.watch.treasury is not None
        row = till.watch.treasury.accounts[1]
        assert (row.decimals, row.refusal) == (2, None)
        quote = await till.quote_at(row)
        chain.payer.give(mint, chain.treasury.key, 0)
        await till.hear(till.pay(quote))

        assert await outcomes.next() == "credited"


async def test_an_account_that_somebody_else_may_empty_takes_nothing(till: Till) -> None:
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        chain = till.chain
        account = chain.treasury.account(chain.mint)
        chain.treasury.send(make.approve(account, chain.payer.key, chain.treasury.key, 5))
        chain.cluster.tick(FINAL_SLOTS)
        await till.watch.look()

        assert "account_delegated" in await till.reasons()
        await till.hear(till.pay(quote))
        assert await outcomes.next() == "account_delegated"
        assert (await till.again(quote)).granted_seconds == 0
        assert await till.reasons() == ["account_delegated"] * 2  # the account, and the money
        chain.treasury.send(make.revoke(account, chain.treasury.key))
        chain.cluster.tick(FINAL_SLOTS)
        await till.watch.look()

        (money,) = await till.store.anomalies(10, None)
        await till.store.redrive_anomaly(money.id, till.settler.terms)
        assert await outcomes.next() == "credited"
        assert await till.reasons() == []
        assert (await till.again(quote)).granted_seconds == 30
