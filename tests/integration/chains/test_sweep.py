"""With every push channel dead the sweep finds all payments, on nodes that lag, hide, fail and forget."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.core.errors import StoreUnavailable
from tempa.core.work import INBOX
from tempa.settlement.history import OVERLAP_SLOTS
from tempa.settlement.inbox import Cursor, InboxEnding, InboxState
from tempa.settlement.lookup import Patience
from tempa.settlement.model import SOL, QuoteStatus
from tempa.settlement.sweep import cursor_key
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.sweeping import Broken, Hiding, Tally, pay_many, shown, sweeper, unheard
from tests.integration.chains.till import FINAL_SLOTS, Till

if TYPE_CHECKING:
    from tests.integration.chains.conftest import Connect

PATIENCE_SECONDS = 10.0


@pytest.fixture
async def one(till: Till, connect: Connect) -> Till:
    """A till with a single node, which hides what it is told to."""
    return await opened(till, Hiding(connect(0)))


async def opened(till: Till, *nodes: object) -> Till:
    """The same till with other nodes, its treasury looked up."""
    made = Till(till.chain, till.store, till.wake, nodes)  # type: ignore[arg-type]
    await made.watch.look()
    return made


async def cursor_of(till: Till, node: int = 0) -> Cursor | None:
    return await till.store.cursor(cursor_key(f"node {node}", str(till.chain.treasury.key)))


async def test_the_sweep_alone_brings_every_payment_to_its_credit(till: Till) -> None:
    async with till.settling() as outcomes:
        quotes = [await till.quote(30, asset) for asset in (SOL, str(till.chain.mint), SOL)]
        for quote in quotes:
            till.pay(quote)
        till.pay_nobody(5_000)
        await sweeper(till).sweep()

        while (await till.store.pending_lookups())[0]:
            await outcomes.next()
        for quote in quotes:
            assert (await till.again(quote)).status is QuoteStatus.CREDITED
        assert "no_reference" in await till.reasons()


async def test_nothing_is_swept_twice_or_posted_twice(till: Till) -> None:
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        signature = till.pay(quote)
        for _ in range(4):
            await sweeper(till).sweep()
        while (await till.store.pending_lookups())[0]:
            await outcomes.next()

        assert len(await till.store.receipts_of(signature)) == 1
        assert (await till.again(quote)).granted_seconds == 30
        assert [entry.source for entry in await till.store.inbox_of(signature)] == ["sweep"]


@pytest.mark.parametrize("page_limit", [1, 3, 7])
async def test_small_pages_over_many_in_a_slot_leave_nothing_out(till: Till, page_limit: int) -> None:
    """Each node has an order of its own within a slot."""
    await till.watch.look()
    pay_many(till, 16, a_slot=8)
    swept = sweeper(till, page_limit=page_limit, pages_max=1000)

    for _ in till.nodes:
        assert await swept.sweep()

    assert await unheard(till, shown(till)) == set()
    for node in range(len(till.nodes)):
        cursor = await cursor_of(till, node)
        assert cursor is not None
        assert cursor.unread is None


async def test_more_than_one_full_page_is_read(one: Till) -> None:
    pay_many(one, 1_050, a_slot=50)

    assert await sweeper(one).sweep()

    assert len(shown(one)) > 1_050
    assert await unheard(one, shown(one)) == set()


async def test_a_payment_that_a_fork_has_taken_is_found_when_it_lands_again(till: Till) -> None:
    async with till.settling() as outcomes:
        cluster = till.chain.cluster
        quote = await till.quote(30)
        below = cluster.tip.slot
        cluster.tick()
        signature = till.pay(quote, final=False)
        cluster.tick(5)
        assert cluster.fork(below) == [signature]
        cluster.tick(FINAL_SLOTS)
        swept = sweeper(till)
        await swept.sweep()
        assert await unheard(till, [signature]) == {signature}
        assert cluster.land(signature)
        cluster.tick(FINAL_SLOTS)
        await swept.sweep()

        while (await till.again(quote)).status is not QuoteStatus.CREDITED:
            await outcomes.next()
        assert len(await till.store.receipts_of(signature)) == 1


async def test_what_one_node_hides_another_shows_however_late(till: Till, connect: Connect) -> None:
    liar = Hiding(connect(0))
    both = await opened(till, liar, connect(1))
    swept = sweeper(both, page_limit=1)
    await swept.sweep()
    await swept.sweep()
    hidden, plain = pay_many(both, 2, a_slot=1)
    liar.hidden = {hidden}
    both.chain.cluster.tick(2 * OVERLAP_SLOTS)
    await swept.sweep()
    assert await unheard(both, [hidden, plain]) == {hidden}
    both.chain.cluster.tick(2 * OVERLAP_SLOTS)

    await swept.sweep()

    assert await unheard(both, [hidden]) == set()


@pytest.mark.parametrize("command", ["take_in", "advance_cursor"])
async def test_a_sweep_that_dies_anywhere_loses_nothing(one: Till, command: str) -> None:
    """Before the inbox has it, or between the inbox and the cursor."""
    await sweeper(one).sweep()
    cursor = await cursor_of(one)
    paid = pay_many(one, 3)
    one.chain.cluster.tick(2 * OVERLAP_SLOTS)

    with pytest.raises(StoreUnavailable):
        await sweeper(one, store=Broken(one.store, command)).sweep()

    assert await unheard(one, paid) == (set(paid) if command == "take_in" else set())
    assert await cursor_of(one) == cursor
    await sweeper(one).sweep()
    assert await unheard(one, paid) == set()
    further = await cursor_of(one)
    assert further is not None
    assert cursor is not None
    assert further.slot > cursor.slot + OVERLAP_SLOTS


async def test_a_page_that_cannot_be_read_leaves_the_cursor_where_it_was(
    till: Till, connect: Connect
) -> None:
    node = Hiding(connect(0))
    one = await opened(till, node)
    await sweeper(one).sweep()
    cursor = await cursor_of(one)
    paid = pay_many(one, 12)
    node.pages_left = 3

    await sweeper(one, page_limit=3).sweep()

    assert await cursor_of(one) == cursor
    assert await unheard(one, paid)
    node.pages_left = None
    await sweeper(one, page_limit=3).sweep()
    assert await unheard(one, paid) == set()


async def test_a_node_in_trouble_is_replaced_in_the_same_round(till: Till) -> None:
    await till.watch.look()
    paid = pay_many(till, 3)
    till.chain.nodes[0].faults["getSignaturesForAddress"] = [Fault("http", times=None, status=503)]
    meter = Tally()

    assert await sweeper(till, meter=meter).sweep()

    assert await unheard(till, paid) == set()
    assert meter.counts["tempa_settlement_sweep_pages_total", "node 0", "node_unavailable"]
    assert await cursor_of(till, 0) is None
    assert await cursor_of(till, 1) is not None


async def test_a_node_that_is_behind_vouches_for_no_more_than_it_has(till: Till, connect: Connect) -> None:
    late = await opened(till, connect(1))
    late.chain.cluster.tick(200)
    late.chain.nodes[1].lag_slots = 100
    paid = pay_many(late, 3)

    await sweeper(late).sweep()

    cursor = await cursor_of(late, 1)
    assert cursor is not None
    assert cursor.slot == late.chain.cluster.tip.slot - 100 - 32
    assert await unheard(late, paid) == set(paid)
    late.chain.nodes[1].lag_slots = 0
    await sweeper(late).sweep()
    assert await unheard(late, paid) == set()


async def test_a_backend_that_is_behind_its_node_is_not_believed(one: Till) -> None:
    """The slot was told by another than who tells the history: as behind one address there are many."""
    one.chain.cluster.tick(100)
    await sweeper(one).sweep()
    cursor = await cursor_of(one)
    pay_many(one, 3)
    fresh = await one.nodes[0].slot()
    assert isinstance(fresh, int)
    one.nodes[0].told_slot = fresh  # type: ignore[attr-defined]
    one.chain.nodes[0].lag_slots = 60

    await sweeper(one).sweep()

    assert await cursor_of(one) == cursor


async def test_a_slot_of_the_far_future_moves_no_cursor_there(till: Till, connect: Connect) -> None:
    liar = Hiding(connect(0))
    liar.told_slot, liar.is_careless = 2**60, True
    three = await opened(till, liar, connect(1), connect(2))
    tip = three.chain.cluster.tip.slot

    swept = sweeper(three)
    for _ in three.nodes:
        await swept.sweep()

    for node in range(3):
        cursor = await cursor_of(three, node)
        assert cursor is not None
        assert cursor.slot <= tip


async def test_a_long_history_is_read_in_turns_and_goes_on_after_a_restart(one: Till) -> None:
    paid = [
        signature for part in range(12) for signature in pay_many(one, 5, first=10 * part, then=OVERLAP_SLOTS)
    ]
    calls = one.chain.nodes[0].calls
    rounds = 0
    fresh: list[str] = []
    while not await sweeper(one, page_limit=5, pages_max=3).sweep():  # each time a new one
        rounds += 1
        if rounds == 2:
            fresh = pay_many(one, 1, first=5_000)
        if rounds == 3:
            assert await unheard(one, fresh) == set()
            assert await unheard(one, paid)
        assert rounds < 100

    assert rounds > 3
    assert await unheard(one, shown(one)) == set()
    cursor = await cursor_of(one)
    assert cursor is not None
    assert cursor.unread is None
    assert calls["getSignaturesForAddress"] < 60  # a restart does not read all of it again


async def test_a_node_that_forgets_its_history_keeps_its_cursor_and_is_not_counted(
    till: Till, connect: Connect
) -> None:
    pruned = Hiding(connect(0))
    both = await opened(till, pruned, connect(1))
    old = pay_many(both, 3)
    swept = sweeper(both)
    await swept.sweep()
    await swept.sweep()
    cursor = await cursor_of(both, 0)
    address = str(both.chain.treasury.key)
    pruned.hidden = shown(both, address)
    both.chain.cluster.tick(2 * OVERLAP_SLOTS)
    fresh = pay_many(both, 2, first=100)

    await swept.sweep()

    assert await cursor_of(both, 0) == cursor
    assert await unheard(both, old + fresh) == set()  # what it does show is taken in, and the other shows all
    assert await swept.swept(address) == await both.nodes[1].slot()


async def test_what_no_node_showed_is_looked_up_as_soon_as_the_sweep_sees_it(till: Till) -> None:
    till.settler.patience = Patience(not_found_after_seconds=0.0)
    async with till.settling() as outcomes:
        quote = await till.quote(30)
        swept = sweeper(till)
        signature = till.pay(quote, final=False)
        await till.hear(signature, source="sweep")
        assert await outcomes.next() == "not_found_yet"
        await put_off(till, signature)
        till.chain.cluster.tick(FINAL_SLOTS)

        await swept.sweep()

        while (await till.again(quote)).status is not QuoteStatus.CREDITED:
            await outcomes.next()


async def put_off(till: Till, signature: str) -> None:
    """As after a day of waiting: its next lookup is in six hours."""
    ending = InboxEnding(
        signature=signature, state=InboxState.PENDING, reason="not_found_yet", delay_seconds=6 * 3600.0
    )
    await till.store.settle_inbox([ending])


async def test_a_failed_transaction_matters_only_where_the_treasury_may_have_paid_its_fee(till: Till) -> None:
    await till.watch.look()
    chain = till.chain
    source, target = chain.payer.account(chain.mint), chain.treasury.account(chain.mint)
    too_much = make.pay(source, target, chain.payer.key, 2**63)
    theirs = chain.payer.send(too_much, skip_preflight=True)
    ours = chain.treasury.send(make.pay(target, source, chain.treasury.key, 2**62), skip_preflight=True)
    chain.cluster.tick(FINAL_SLOTS)
    assert {theirs, ours} <= shown(till, str(target))

    await sweeper(till).sweep()

    assert await unheard(till, [theirs, ours]) == {theirs}


async def test_a_sweep_that_is_stopped_before_it_reads_moves_no_cursor(one: Till) -> None:
    pay_many(one, 3)
    node, stop = one.nodes[0], asyncio.Event()
    slot = node.slot

    async def stops() -> object:
        stop.set()
        return await slot()

    node.slot = stops  # type: ignore[method-assign, assignment]
    async with asyncio.timeout(PATIENCE_SECONDS):
        await sweeper(one).run(stop)

    assert await cursor_of(one) is None


async def test_a_sweep_that_is_asked_for_comes_at_once(till: Till) -> None:
    await till.watch.look()
    swept = sweeper(till, every_seconds=3600.0)
    stop = asyncio.Event()
    with till.wake.listen(INBOX) as bell:
        task = asyncio.create_task(swept.run(stop))
        assert await bell.wait(PATIENCE_SECONDS)  # the first one, of what was there before
        while await bell.wait(0.2):
            pass
        paid = pay_many(till, 1)
        swept.sweep_soon()
        assert await bell.wait(PATIENCE_SECONDS)
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await task
    assert await unheard(till, paid) == set()


async def test_silence_costs_one_call_an_account_and_round(one: Till) -> None:
    one.chain.cluster.tick(2 * OVERLAP_SLOTS)
    swept = sweeper(one)
    await swept.sweep()
    calls = one.chain.nodes[0].calls
    before = calls["getSignaturesForAddress"]

    await swept.sweep()

    assert one.watch.treasury is not None
    assert calls["getSignaturesForAddress"] - before == len(one.watch.treasury.accounts)
