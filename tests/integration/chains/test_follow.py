"""A quote shows its payment as it comes: seen, final, credited; and only what really pays it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from solders.pubkey import Pubkey

from tempa.core.clock import SystemClock
from tempa.settlement.follow import SOURCE, Follower
from tempa.settlement.model import SOL, QuoteStatus
from tempa.testing.clock import ManualClock
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.sweeping import Tally, pay_many, sweeper
from tests.integration.chains.till import FINAL_SLOTS, SECOND, Till

if TYPE_CHECKING:
    from tempa.settlement.quotes import Quote
    from tests.integration.chains.conftest import Connect

LOOKS = "tempa_settlement_reference_looks_total"


@pytest.fixture
async def follower(till: Till, connect: Connect) -> Follower:
    """With one client that shows what is confirmed: under tower 31 slots before it is final."""
    await till.watch.look()
    return following(till, glances=[connect(0, commitment="confirmed")])


def following(till: Till, **options: Any) -> Follower:
    parts = {"store": till.store, "quorum": till.quorum, "watch": till.watch, "meter": Tally()}
    return Follower(**{**parts, "clock": SystemClock(), **options})


async def status(till: Till, quote: Quote) -> QuoteStatus:
    return (await till.again(quote)).status


async def test_a_quote_is_seen_then_final_then_credited(till: Till, follower: Follower) -> None:
    quote = await till.quote(30)
    await follower.look()
    assert await status(till, quote) is QuoteStatus.OPEN
    signature = till.pay(quote, final=False)
    slot = till.chain.cluster.tip.slot
    till.chain.cluster.tick(2)

    await follower.look()
    shown = await till.again(quote)
    assert (shown.status, shown.signature) == (QuoteStatus.SEEN, signature)
    assert shown.seen is not None
    assert shown.seen.slot == slot
    assert await till.store.inbox_of(signature) == []  # nothing would be found yet

    till.chain.cluster.tick(FINAL_SLOTS)
    await follower.look()
    assert await status(till, quote) is QuoteStatus.FINAL
    assert [entry.source for entry in await till.store.inbox_of(signature)] == [SOURCE]

    async with till.settling() as outcomes:
        assert await outcomes.next() == "credited"
    assert await status(till, quote) is QuoteStatus.CREDITED


async def test_without_a_quick_client_a_payment_is_found_when_it_is_final(till: Till) -> None:
    await till.watch.look()
    follower = following(till)
    quote = await till.quote(30, SOL)
    signature = till.pay(quote, final=False)
    till.chain.cluster.tick(2)
    await follower.look()
    assert await status(till, quote) is QuoteStatus.OPEN
    till.chain.cluster.tick(FINAL_SLOTS)

    await follower.look()

    assert await status(till, quote) is QuoteStatus.FINAL
    assert await till.store.inbox_of(signature)


async def test_a_reference_in_somebodys_own_transfer_shows_nothing(till: Till, follower: Follower) -> None:
    """Another recipient, another asset, and a failure: none of them pays the quote."""
    quote = await till.quote(30)
    chain, reference = till.chain, Pubkey.from_string(quote.offer.reference)
    key = chain.payer.key
    elsewhere = make.pay_sol(key, chain.faucet.wallet.key, 1_000_000)
    other_asset = make.pay_sol(key, chain.treasury.key, 1_000_000)
    source, target = chain.payer.account(chain.mint), chain.treasury.account(chain.mint)
    too_much = make.pay(source, target, key, 2**63)
    for step in (elsewhere, other_asset, too_much):
        chain.payer.send(make.labelled(step, reference), skip_preflight=True)
    chain.cluster.tick(FINAL_SLOTS)

    for _ in range(2):
        await follower.look()

    assert await status(till, quote) is QuoteStatus.OPEN
    assert await till.store.pending_lookups() == (0, None)
    till.pay(quote)
    await follower.look()
    assert await status(till, quote) is QuoteStatus.FINAL


async def test_one_look_into_a_transaction_is_enough(till: Till, follower: Follower) -> None:
    quote = await till.quote(30)
    till.pay(quote, final=False)
    till.chain.cluster.tick(2)
    for _ in range(4):
        await follower.look()

    assert sum(node.calls.get("getTransaction", 0) for node in till.chain.nodes) == 1


async def test_a_payment_that_a_fork_takes_is_seen_and_found_again(till: Till, follower: Follower) -> None:
    cluster = till.chain.cluster
    quote = await till.quote(30)
    below = cluster.tip.slot
    cluster.tick()
    signature = till.pay(quote, final=False)
    cluster.tick(2)
    await follower.look()
    assert cluster.fork(below) == [signature]
    await follower.look()
    cluster.land(signature)
    cluster.tick(FINAL_SLOTS)

    await follower.look()

    assert await status(till, quote) is QuoteStatus.FINAL


async def test_a_quick_client_in_trouble_is_replaced_by_another(till: Till, connect: Connect) -> None:
    await till.watch.look()
    meter = Tally()
    follower = following(till, glances=[connect(0, commitment="confirmed")], meter=meter)
    quote = await till.quote(30)
    till.pay(quote)
    till.chain.nodes[0].faults["getSignaturesForAddress"] = [Fault("error", code=-32602, times=None)]

    await follower.look()
    await follower.look()

    assert await status(till, quote) is QuoteStatus.FINAL
    assert meter.counts[LOOKS, "call_refused"]


async def test_that_the_last_node_is_excluded_meanwhile_costs_a_look(till: Till, follower: Follower) -> None:
    quote = await till.quote(30)
    till.pay(quote)
    (glance,) = follower.glances
    look_up = glance.signatures_for_address

    async def excludes(address: str, *, limit: int) -> object:
        till.quorum.excluded = {node.name: "node_unreachable" for node in till.nodes}
        return await look_up(address, limit=limit)

    glance.signatures_for_address = excludes  # type: ignore[method-assign, assignment]
    await follower.look()
    assert await status(till, quote) is QuoteStatus.SEEN

    till.quorum.excluded = {}
    glance.signatures_for_address = look_up  # type: ignore[method-assign]
    await follower.look()
    assert await status(till, quote) is QuoteStatus.FINAL


async def test_a_flood_of_dust_keeps_no_quote_waiting(till: Till, follower: Follower) -> None:
    """The flood is in the inbox first, hundreds of lookups deep."""
    quote = await till.quote(30, SOL)
    pay_many(till, 60, a_slot=20)
    await sweeper(till).sweep()
    waiting, _ = await till.store.pending_lookups()
    signature = till.pay(quote)
    await sweeper(till).sweep()
    await follower.look()

    (claim,) = await till.store.claim_inbox(1, 30.0)

    assert waiting > 60
    assert claim.signature == signature


async def test_quotes_are_looked_for_in_turn_and_paid_ones_no_more(till: Till) -> None:
    await till.watch.look()
    meter = Tally()
    follower = following(till, open_max=2, past_max=1, meter=meter)
    quotes = [await till.quote(30, SOL) for _ in range(5)]
    async with till.settling() as outcomes:
        await till.hear(till.pay(quotes[0]))
        assert await outcomes.next() == "credited"
    signatures = [till.pay(quote) for quote in quotes[1:]]

    for _ in range(3):
        await follower.look()

    assert meter.counts[LOOKS, "read"] == 4
    for signature in signatures:
        assert await till.store.inbox_of(signature)


async def test_quotes_of_the_past_are_looked_for_too(till: Till) -> None:
    await till.watch.look()
    later = ManualClock(SystemClock().now() + timedelta(days=2))
    follower = following(till, clock=later, past_max=1)
    quotes = [await till.quote(30, SOL) for _ in range(3)]
    signatures = [till.pay(quote, 30 * SECOND) for quote in quotes]

    for _ in range(4):
        await follower.look()

    for signature in signatures:
        assert await till.store.inbox_of(signature)


async def test_a_payment_to_what_is_no_treasury_any_more_is_shown_to_people(
    till: Till, follower: Follower
) -> None:
    """The mint was taken off the list while a quote in it was open: its customer paid as he was told."""
    quote = await till.quote(30)
    treasury = till.quorum.treasury
    till.quorum.treasury = replace(treasury, accounts=treasury.accounts[:1])
    signature = till.pay(quote)

    await follower.look()

    assert await status(till, quote) is QuoteStatus.OPEN
    assert [entry.signature for entry in await till.store.inbox_of(signature)] == [signature]
    async with till.settling() as outcomes:
        assert await outcomes.next() == "mint_not_allowed"
    assert "mint_not_allowed" in await till.reasons()
