"""Contract of refunds: what waits may be sent back, once; of none are there ever two live transactions."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.ids import new_id
from tempa.settlement.anomalies import Redriven
from tempa.settlement.journal import OUTSIDE, REFUNDS, UNALLOCATED, first_broken
from tempa.settlement.model import Outflow, Verdict
from tempa.settlement.post import Posted, Proven
from tempa.settlement.refunds import NewRefund, Outcome, RefundState, Signed
from tempa.testing.contracts.settlement_steps import (
    CLUSTER,
    MINT,
    TERMS,
    TOKENS,
    a_quote,
    a_signature,
    an_address,
    an_instance,
    pay,
    proven,
)
from tempa.testing.contracts.settlement_suspense import outpaid, the_anomaly

if TYPE_CHECKING:
    from tempa.settlement.refunds import Refund
    from tempa.testing.contracts.bench import StoreBench


def a_request(anomaly_id: str) -> NewRefund:
    """A refund that nobody has asked for yet."""
    return NewRefund(id=new_id("ref"), anomaly_id=anomaly_id, destination=an_address(), note="Ana, 3 May")


def a_signing(last_valid_height: int = 300) -> Signed:
    """A transaction that nobody has signed before."""
    return Signed(b"\x01\x00\xff" + a_signature().encode(), a_signature(), last_valid_height)


async def requested(bench: StoreBench, amount: int = 700) -> Refund:
    """A refund of money that named nobody."""
    await pay(bench, None, amount)
    refund = await bench.store.request_refund(a_request((await the_anomaly(bench)).id))
    assert refund is not None
    return refund


async def sent(bench: StoreBench, refund: Refund, signed: Signed | None = None) -> Signed:
    """A transaction of it is on its way."""
    signed = signed or a_signing()
    assert await bench.store.keep_signing(refund.id, signed)
    assert await bench.store.note_sent(refund.id, signed.signature)
    return signed


def leaving(signed: Signed, amount: int) -> Proven:
    """What the chain shows when it has landed."""
    outflow = Outflow(
        cluster=CLUSTER,
        signature=signed.signature,
        asset=MINT,
        account=TOKENS.address,
        kind="transfer",
        amount=amount,
        slot=9,
        index=0,
        block_time=None,
    )
    verdict = Verdict(signature=signed.signature, slot=9, outflows=(outflow,), reason="treasury_outflow")
    return Proven(verdict=verdict, terms=TERMS)


async def the_refund(bench: StoreBench, refund: Refund) -> Refund:
    """As it stands now."""
    found = await bench.store.refund(refund.id)
    assert found is not None
    return found


class RefundContract:
    """States and sums."""

    async def test_money_that_is_sent_back_waits_for_nobody_else(self, bench: StoreBench) -> None:
        ours, _ = await outpaid(bench)
        anomaly = await the_anomaly(bench)

        refund = await bench.store.request_refund(a_request(anomaly.id))

        assert refund is not None
        assert (refund.state, refund.amount, refund.asset) == (RefundState.REQUESTED, 7_200, MINT)
        assert refund.signature == anomaly.signature
        assert await bench.store.anomalies(10, None) == []
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.UNKNOWN
        assert (await bench.store.resolve_anomaly(anomaly.id, "mine", TERMS, ours.id)).was_resolved
        assert await bench.store.request_refund(a_request(anomaly.id)) is None
        assert await bench.store.request_refund(a_request("ano_unknown")) is None
        balances = await bench.store.balances()
        assert (balances[UNALLOCATED, MINT], balances[REFUNDS, MINT]) == (0, -7_200)
        assert await bench.store.open_refunds("", 10) == [refund]

    async def test_of_many_requests_at_once_one_is_granted(self, bench: StoreBench) -> None:
        await pay(bench, None, 700)
        anomaly = await the_anomaly(bench)

        granted = await asyncio.gather(*(bench.store.request_refund(a_request(anomaly.id)) for _ in range(8)))

        assert sum(one is not None for one in granted) == 1
        assert (await bench.store.balances())[REFUNDS, MINT] == -700

    async def test_it_is_final_behind_its_outflow_and_the_books_are_even(self, bench: StoreBench) -> None:
        refund = await requested(bench)
        signed = await sent(bench, refund)
        assert await bench.store.end_signing(refund.id, signed.signature, Outcome.FINAL) is None

        assert await bench.store.post_credits(leaving(signed, 700)) == Posted()
        ended = await bench.store.end_signing(refund.id, signed.signature, Outcome.FINAL)

        assert ended is not None
        assert (ended.state, ended.live) == (RefundState.FINAL, None)
        assert ended.ended_at == bench.clock.now()
        balances = await bench.store.balances()
        assert {balances[name, MINT] for name in (UNALLOCATED, REFUNDS, OUTSIDE)} == {0}
        assert sum(balances.values()) == 0
        assert await bench.store.anomalies(10, None) == []  # an outflow that is known alarms nobody
        assert first_broken(await bench.store.journal(0, 100)) is None
        assert await bench.store.open_refunds("", 10) == []
        assert await bench.store.end_signing(refund.id, signed.signature, Outcome.FAILED) is None

    async def test_another_amount_than_its_own_does_not_end_it(self, bench: StoreBench) -> None:
        refund = await requested(bench)
        signed = await sent(bench, refund)
        await bench.store.post_credits(leaving(signed, 701))

        assert await bench.store.end_signing(refund.id, signed.signature, Outcome.FINAL) is None

        assert (await the_refund(bench, refund)).state is RefundState.BROADCAST
        assert await bench.store.give_up_refund(refund.id, "?") is None

    async def test_there_is_one_live_transaction_whoever_signs(self, bench: StoreBench) -> None:
        refund = await requested(bench)
        signings = [a_signing() for _ in range(8)]

        kept = await asyncio.gather(*(bench.store.keep_signing(refund.id, one) for one in signings))

        assert kept.count(True) == 1
        stands = await the_refund(bench, refund)
        assert stands.state is RefundState.SIGNED
        assert stands.live is not None
        first = signings[kept.index(True)]
        assert (stands.live.raw, stands.live.signature) == (first.raw, first.signature)
        assert (stands.live.last_valid_height, stands.live.sent_at) == (300, None)
        other = signings[kept.index(False)]
        assert not await bench.store.note_sent(refund.id, other.signature)
        assert await bench.store.end_signing(refund.id, other.signature, Outcome.EXPIRED) is None
        assert not await bench.store.keep_signing("ref_unknown", a_signing())

    async def test_what_has_expired_may_be_signed_again(self, bench: StoreBench) -> None:
        refund = await requested(bench)
        first = await sent(bench, refund)

        expired = await bench.store.end_signing(refund.id, first.signature, Outcome.EXPIRED)
        assert expired is not None
        assert (expired.state, expired.live, expired.ended_at) == (RefundState.EXPIRED, None, None)
        second = await sent(bench, refund)
        await bench.store.post_credits(leaving(second, 700))
        ended = await bench.store.end_signing(refund.id, second.signature, Outcome.FINAL)

        assert ended is not None
        assert [one.outcome for one in ended.signings] == [Outcome.EXPIRED, Outcome.FINAL]
        assert not await bench.store.keep_signing(refund.id, a_signing())
        assert (await bench.store.balances())[REFUNDS, MINT] == 0

    async def test_what_has_failed_waits_again_and_can_be_given(self, bench: StoreBench) -> None:
        ours, _ = await outpaid(bench)
        before = await the_anomaly(bench)
        refund = await bench.store.request_refund(a_request(before.id))
        assert refund is not None
        signed = await sent(bench, refund)

        failed = await bench.store.end_signing(refund.id, signed.signature, Outcome.FAILED, "no account")

        assert failed is not None
        assert (failed.state, failed.reason) == (RefundState.FAILED, "no account")
        again = await the_anomaly(bench)
        assert (again.id, again.reason, again.amount) == (before.id, before.reason, 7_200)
        assert "no account" in again.detail
        balances = await bench.store.balances()
        assert (balances[UNALLOCATED, MINT], balances[REFUNDS, MINT]) == (-7_200, 0)
        other = await a_quote(bench, await an_instance(bench), account=ours.account)
        given = await bench.store.resolve_anomaly(again.id, "another instance", TERMS, other.id)
        assert given.refusal is None
        assert (await bench.store.balances())[UNALLOCATED, MINT] == 0

    async def test_it_is_given_up_only_while_nothing_of_it_can_land(self, bench: StoreBench) -> None:
        refund = await requested(bench)
        signed = await sent(bench, refund)
        assert await bench.store.give_up_refund(refund.id, "changed my mind") is None
        await bench.store.end_signing(refund.id, signed.signature, Outcome.EXPIRED)

        given_up = await bench.store.give_up_refund(refund.id, "changed my mind")

        assert given_up is not None
        assert given_up.state is RefundState.FAILED
        assert (await the_anomaly(bench)).amount == 700
        assert await bench.store.give_up_refund(refund.id, "again") is None
        second = await bench.store.request_refund(a_request((await the_anomaly(bench)).id))
        assert second is not None

    async def test_open_refunds_are_read_page_by_page(self, bench: StoreBench) -> None:
        made = [await requested(bench, amount) for amount in (100, 200, 300)]

        first = await bench.store.open_refunds("", 2)
        rest = await bench.store.open_refunds(first[-1].id, 2)

        assert first + rest == made

    async def test_all_refunds_are_read_newest_first(self, bench: StoreBench) -> None:
        made = [await requested(bench, amount) for amount in (300, 100, 200)]
        given_up = await bench.store.give_up_refund(made[0].id, "changed my mind")

        first = await bench.store.refunds(2, None)
        rest = await bench.store.refunds(2, first[-1].id)

        assert first + rest == [made[2], made[1], given_up]
        (receipt, *_) = await bench.store.receipts(0, 1)
        assert (made[0].anomaly_id, made[0].slot) == ((await the_anomaly(bench)).id, receipt.receipt.slot)


class ActContract:
    """What operators did, for whoever builds the ledger anew."""

    async def test_acts_stand_in_order_behind_the_entries_they_came_behind(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        await pay(bench, None, 100)
        await bench.store.change_prices(gpu, [])
        await bench.store.suspend_instance(gpu)
        await bench.store.suspend_instance(gpu)  # it is already
        await pay(bench, None, 100)
        await bench.store.resume_instance(gpu)
        assert not await bench.store.change_prices("gpu_unknown", [])

        acts = await bench.store.instance_acts(0, 3)
        rest = await bench.store.instance_acts(acts[-1].number, 3)

        assert [(act.kind, act.after_entry) for act in acts + rest] == [
            ("added", 0),
            ("priced", 1),
            ("suspended", 1),
            ("resumed", 2),
        ]
        assert {act.gpu_instance_id for act in acts + rest} == {gpu}
        assert acts[1].prices == ()


class PlaceContract:
    """Receipts in the chain's order, and the journal by its hashes."""

    async def test_receipts_are_read_in_the_chains_order(self, bench: StoreBench) -> None:
        places = [(7, 2), (7, None), (3, 9), (7, 0), (5, 1)]
        for slot, index in places:
            await pay(bench, None, 100, slot=slot, index=index)
        ends = await bench.store.ledger_ends()
        first = await bench.store.receipts_by_place(None, 2, ends.receipt)
        last = first[-1]
        after = (
            last.slot,
            -1 if last.index is None else last.index,
            last.account,
            last.signature,
            last.asset,
        )

        rest = await bench.store.receipts_by_place(after, 10, ends.receipt)

        assert [(one.slot, one.index) for one in first + rest] == [(3, 9), (5, 1), (7, None), (7, 0), (7, 2)]
        numbers = [one.number for one in await bench.store.receipts(0, 10)]
        early = await bench.store.receipts_by_place(None, 10, numbers[1])
        assert [(one.slot, one.index) for one in early] == [(7, None), (7, 2)]
        lowest = await bench.store.lowest_receipt(numbers[2], numbers[4])
        assert lowest is not None
        assert (lowest.slot, lowest.index) == (5, 1)
        assert await bench.store.lowest_receipt(numbers[4], numbers[4]) is None

    async def test_texts_are_in_the_order_of_their_bytes(self, bench: StoreBench) -> None:
        """Whatever language the database sorts by: roots have to be the same everywhere."""
        signatures = sorted(a_signature()[:-2] + tail for tail in ("Aa", "aA", "Zz", "zZ", "1b", "aa"))
        for signature in reversed(signatures):
            await pay(bench, None, 100, slot=7, index=None, signature=signature)

        found = await bench.store.receipts_by_place(None, 10, (await bench.store.ledger_ends()).receipt)

        assert [one.signature for one in found] == sorted(signatures)

    async def test_entries_are_read_by_hash_and_by_key(self, bench: StoreBench) -> None:
        for _ in range(4):
            await pay(bench, None, 100)
        entries = await bench.store.journal(0, 10)

        hashes = await bench.store.entry_hashes(1, 3, 10)
        chosen = await bench.store.entries([entries[3].draft.key, entries[1].draft.key, "none"])

        assert hashes == [(2, entries[1].hash), (3, entries[2].hash)]
        assert chosen == [entries[1], entries[3]]
        assert await bench.store.entries([]) == []
        assert (await bench.store.ledger_ends()).entry == 4

    async def test_a_quotes_payments_stand_in_order_with_their_price(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        receipt = await pay(bench, quote, 301)
        await pay(bench, quote, 301)
        await bench.store.post_credits(proven(replace(receipt, signature=a_signature(), amount=99)))

        first = await bench.store.payments_of_quote(quote.id, 0, 2)
        rest = await bench.store.payments_of_quote(quote.id, first[-1].number, 2)

        assert [(one.amount, one.seconds) for one in first + rest] == [(301, 150), (301, 151), (99, 49)]
        assert {one.price for one in first + rest} == {quote.price}
