"""Contract of suspense: money that no quote can take stays in sight, and can be given later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.core.work import INBOX
from tempa.settlement.anomalies import RAW_SHOWN_BYTES, NewAnomaly, Redriven
from tempa.settlement.attribution import memo_for
from tempa.settlement.events import UNMATCHED
from tempa.settlement.inbox import InboxState
from tempa.settlement.journal import UNALLOCATED
from tempa.settlement.model import Outflow, QuoteStatus, Stray, Verdict
from tempa.settlement.post import Posted, Proven, Terms
from tempa.settlement.quotes import PriceOffer, Quote, QuoteSighting
from tempa.settlement.rentals import GRANT_SECONDS_MAX
from tempa.testing.contracts.samples import OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import (
    CLUSTER,
    HOUR,
    LAMPORTS,
    LOCK_SECONDS,
    MINT,
    OPERATOR,
    TERMS,
    TOKENS,
    a_quote,
    a_receipt,
    a_signature,
    an_address,
    an_instance,
    heard,
    pay,
    proven,
    the_instance,
    the_quote,
    told,
)

if TYPE_CHECKING:
    from tempa.settlement.anomalies import Anomaly
    from tempa.settlement.quotes import NewQuote
    from tempa.testing.contracts.bench import StoreBench


async def the_anomaly(bench: StoreBench) -> Anomaly:
    """The one that is open."""
    (anomaly,) = await bench.store.anomalies(10, None)
    return anomaly


async def outpaid(bench: StoreBench) -> tuple[NewQuote, str]:
    """A quote whose instance went to another, who paid first; paid all the same."""
    gpu = await an_instance(bench)
    ours, theirs = await a_quote(bench, gpu), await a_quote(bench, gpu, account=OTHER_ACCOUNT)
    await pay(bench, theirs, 7_200)
    await pay(bench, ours, 7_200)
    return ours, gpu


def an_outflow(signature: str, amount: int, kind: str = "transfer") -> Outflow:
    """`amount` of the tokens, out of the treasury."""
    return Outflow(
        cluster=CLUSTER,
        signature=signature,
        asset=MINT,
        account=TOKENS.address,
        kind=kind,
        amount=amount,
        slot=5,
        index=None,
        block_time=None,
    )


class SuspenseContract:
    """Nothing is lost, and nothing is credited by guess."""

    async def test_money_without_a_quote_waits_and_the_operator_is_told(self, bench: StoreBench) -> None:
        receipt = a_receipt(bench, None, 500)

        assert await bench.store.post_credits(proven(receipt)) == Posted(receipts=1, suspended=1)

        anomaly = await the_anomaly(bench)
        assert (anomaly.reason, anomaly.amount, anomaly.asset) == ("no_reference", 500, MINT)
        assert (await bench.store.balances())[UNALLOCATED, MINT] == -500
        (event,) = await told(bench, UNMATCHED)
        assert event.account == OPERATOR
        assert event.body["data"]["signature"] == receipt.signature

    async def test_dust_waits(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))

        await pay(bench, quote, TERMS.dust[MINT] - 1)

        assert (await the_anomaly(bench)).reason == "dust"
        assert (await the_quote(bench, quote)).paid == 0

    async def test_a_payment_that_lands_after_the_instance_went_to_another_waits(
        self, bench: StoreBench
    ) -> None:
        ours, gpu = await outpaid(bench)

        anomaly = await the_anomaly(bench)
        assert (anomaly.reason, anomaly.quote_id, anomaly.amount) == ("instance_rented", ours.id, 7_200)
        shown = await the_quote(bench, ours)
        assert (shown.status, shown.reason, shown.granted_seconds) == (
            QuoteStatus.SUSPENSE,
            "instance_rented",
            0,
        )
        assert (await the_instance(bench, gpu)).renter == OTHER_ACCOUNT
        (event,) = await told(bench, UNMATCHED)
        assert (event.account, event.body["data"]["quote_id"]) == (ours.account, ours.id)

    async def test_not_even_a_part_of_a_second_is_taken_for_anothers_instance(
        self, bench: StoreBench
    ) -> None:
        gpu = await an_instance(bench, PriceOffer(MINT, 1_000, 1))
        price = PriceOffer(MINT, 1_000, 1).price
        ours = await a_quote(bench, gpu, price=price)
        await pay(bench, await a_quote(bench, gpu, account=OTHER_ACCOUNT, price=price), 7_200_000)

        await pay(bench, ours, 500)

        assert (await the_anomaly(bench)).reason == "instance_rented"

    async def test_a_suspended_instance_takes_no_payment(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        await bench.store.suspend_instance(gpu)

        await pay(bench, quote, 7_200)

        anomaly = await the_anomaly(bench)
        assert anomaly.reason == "instance_suspended"
        await bench.store.resume_instance(gpu)
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.CREDITED
        assert (await the_quote(bench, quote)).status is QuoteStatus.CREDITED

    async def test_late_money_without_a_price_waits(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        await bench.store.change_prices(gpu, [])
        bench.clock.advance(100_000)

        await pay(bench, quote, 7_200)

        assert (await the_anomaly(bench)).reason == "price_withdrawn"

    async def test_money_for_more_time_than_the_calendar_has_waits(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench, PriceOffer(MINT, 1, 1))
        price = PriceOffer(MINT, 1, 1).price
        first, second, third = [await a_quote(bench, gpu, 1, price=price) for _ in range(3)]

        await pay(bench, first, 2**64 - 1)
        assert (await the_anomaly(bench)).reason == "rental_too_long"
        assert (await the_instance(bench, gpu)).rental is None

        await pay(bench, second, GRANT_SECONDS_MAX)
        await pay(bench, third, 100)
        assert [one.reason for one in await bench.store.anomalies(10, None)] == ["rental_too_long"] * 2
        rental = (await the_instance(bench, gpu)).rental
        assert rental is not None
        assert rental.seconds == GRANT_SECONDS_MAX

    async def test_a_redrive_gives_the_money_when_the_instance_is_free(self, bench: StoreBench) -> None:
        ours, gpu = await outpaid(bench)
        anomaly = await the_anomaly(bench)
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.WAITING
        bench.clock.advance(3_600)
        await bench.store.expire_rentals(0, 0, 10)

        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.CREDITED

        assert (await the_instance(bench, gpu)).renter == ours.account
        assert (await the_quote(bench, ours)).paid == 7_200
        assert await bench.store.anomalies(10, None) == []
        assert (await bench.store.balances())[UNALLOCATED, MINT] == 0
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.UNKNOWN

    async def test_a_redrive_goes_by_the_terms_of_now(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        await pay(bench, quote, 8)

        anomaly = await the_anomaly(bench)
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.WAITING
        assert await bench.store.redrive_anomaly(anomaly.id, Terms(operator=OPERATOR)) is Redriven.CREDITED

        assert (await the_quote(bench, quote)).paid == 8

    async def test_what_is_no_receipt_is_looked_up_again(self, bench: StoreBench) -> None:
        signature = a_signature()
        await bench.store.take_in(heard(signature))
        stray = Stray(
            signature=signature,
            asset=an_address(),
            account=an_address(),
            amount=5,
            slot=9,
            reason="wrong_owner",
        )
        verdict = Verdict(signature=signature, slot=9, strays=(stray,), reason="wrong_owner")
        assert await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS)) == Posted(suspended=1)
        (entry,) = await bench.store.inbox_of(signature)
        assert (entry.state, entry.reason) == (InboxState.TERMINAL, "wrong_owner")

        anomaly = await the_anomaly(bench)
        assert (anomaly.amount, anomaly.account) == (5, stray.account)
        async with bench.expect_ring(INBOX):
            assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.REQUEUED

        assert [claim.signature for claim in await bench.store.claim_inbox(5, 30)] == [signature]

    async def test_what_is_over_is_cleared_and_open_again_if_it_comes_back(self, bench: StoreBench) -> None:
        new = NewAnomaly(key="balance:treasury", reason="balance_mismatch", detail="7 too few", account="it")
        await bench.store.note_anomaly(new)

        assert not await bench.store.clear_anomaly("balance:other", "agreed")
        assert (await the_anomaly(bench)).detail == "7 too few"
        assert await bench.store.clear_anomaly(new.key, "agreed")
        assert not await bench.store.clear_anomaly(new.key, "agreed")
        assert await bench.store.anomalies(10, None) == []

        await bench.store.note_anomaly(new)
        assert ((await the_anomaly(bench)).count, (await the_anomaly(bench)).resolution) == (2, None)

    async def test_a_stray_is_cleared_by_the_receipt_that_it_becomes(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench))
        receipt = a_receipt(bench, quote, 7_200)
        stray = Stray(
            signature=receipt.signature,
            asset=MINT,
            account=TOKENS.address,
            amount=7_200,
            slot=receipt.slot,
            reason="transfer_fee",
        )
        verdict = Verdict(signature=receipt.signature, slot=9, strays=(stray,), reason="transfer_fee")
        await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS))
        anomaly = await the_anomaly(bench)
        assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.REQUEUED
        assert len(await bench.store.claim_inbox(5, 30)) == 1  # it was in nobody's inbox before

        await bench.store.post_credits(proven(receipt))

        assert await bench.store.anomalies(10, None) == []

    async def test_a_quote_whose_money_cannot_be_told_says_so(self, bench: StoreBench) -> None:
        ours = await a_quote(bench, await an_instance(bench))
        theirs = await a_quote(bench, await an_instance(bench), account=OTHER_ACCOUNT)
        both = {"references": (ours.reference, theirs.reference)}
        mismatch = {"references": (ours.reference,), "memos": (memo_for(theirs.id),)}
        of_both, of_one = [ours, theirs], [ours]
        for reason, amount, changes, named in (
            ("several_quotes", 7_200, both, of_both),
            ("memo_mismatch", 7_200, mismatch, of_both),
            ("dust", TERMS.dust[MINT] - 1, {}, of_one),
            ("dust", TERMS.dust[MINT] - 1, {"references": (), "memos": (memo_for(ours.id),)}, of_one),
            ("asset_mismatch", 7_200, {"asset": "SOL", "account": LAMPORTS.address}, of_one),
        ):
            receipt = await pay(bench, ours, amount, **changes)

            for quote in named:
                shown = await the_quote(bench, quote)
                held = (QuoteStatus.SUSPENSE, reason, receipt.signature)
                assert (shown.status, shown.reason, shown.signature) == held
            (anomaly,) = await bench.store.anomalies_of(receipt.signature)
            assert (anomaly.reason, anomaly.amount) == (reason, amount)
            assert anomaly.quote_id == (ours.id if named == of_one else None)
            event = (await told(bench, UNMATCHED))[-1]
            assert event.account == (ours.account if named == of_one else OPERATOR)
            assert await bench.store.redrive_anomaly(anomaly.id, TERMS) is Redriven.WAITING

        await pay(bench, ours, 7_200)
        shown = await the_quote(bench, ours)
        assert (shown.status, shown.reason, shown.paid) == (QuoteStatus.CREDITED, None, 7_200)

    async def test_a_strangers_transfer_spoils_no_quote_that_was_paid(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        for paid, status in ((7_200, QuoteStatus.CREDITED), (100, QuoteStatus.PARTIAL)):
            quote = await a_quote(bench, gpu)
            await pay(bench, quote, paid)
            before = await the_quote(bench, quote)
            assert before.status is status

            await pay(bench, quote, 1)
            await bench.store.suspend_instance(gpu)
            await pay(bench, quote, 7_200)
            await bench.store.resume_instance(gpu)

            assert await the_quote(bench, quote) == before
            waiting = [one.reason for one in await bench.store.anomalies(10, None)]
            assert waiting[:2] == ["instance_suspended", "dust"]

    async def test_a_quote_waits_no_more_for_money_that_went_to_another(self, bench: StoreBench) -> None:
        quote, other = [await a_quote(bench, await an_instance(bench)) for _ in range(2)]
        receipts = [await pay(bench, quote, amount) for amount in (8, 9)]
        sighting = QuoteSighting(quote.reference, "", 7, receipts[0].signature, is_final=True)
        first, second = [(await bench.store.anomalies_of(one.signature))[0] for one in receipts]

        await bench.store.resolve_anomaly(second.id, "it was for the other", TERMS, other.id)
        shown = await the_quote(bench, quote)
        held = (QuoteStatus.SUSPENSE, "dust", receipts[0].signature)
        assert (shown.status, shown.reason, shown.signature) == held

        await bench.store.resolve_anomaly(first.id, "sent back by hand", TERMS)
        assert await bench.store.note_progress([sighting]) == 0  # it is long booked
        assert await the_quote(bench, quote) == Quote(offer=quote, status=QuoteStatus.OPEN)
        bench.clock.advance(LOCK_SECONDS)
        assert (await the_quote(bench, quote)).status is QuoteStatus.EXPIRED
        assert (await the_quote(bench, other)).paid == 9

    async def test_a_person_gives_money_to_a_quote(self, bench: StoreBench) -> None:
        gpu = await an_instance(bench)
        quote = await a_quote(bench, gpu)
        receipt = await pay(bench, None, 7_200)
        anomaly = await the_anomaly(bench)

        refused = await bench.store.resolve_anomaly(anomaly.id, "to nobody", TERMS, "quo_unknown")
        resolved = await bench.store.resolve_anomaly(anomaly.id, "Call of Ana, 3 May", TERMS, quote.id)
        again = await bench.store.resolve_anomaly(anomaly.id, "twice", TERMS, quote.id)

        assert (refused.refusal, resolved.was_resolved, again.was_resolved) == ("no_reference", False, True)
        assert resolved.anomaly is not None
        assert resolved.anomaly.resolution == again.anomaly.resolution == "Call of Ana, 3 May"  # type: ignore[union-attr]
        assert (await the_quote(bench, quote)).granted_seconds == 3_600
        (recorded,) = await bench.store.receipts_of(receipt.signature)
        assert sum(part.amount for part in recorded.allocations) == 7_200

    async def test_a_person_closes_what_needs_no_more(self, bench: StoreBench) -> None:
        await pay(bench, None, 7_200)
        anomaly = await the_anomaly(bench)

        resolved = await bench.store.resolve_anomaly(anomaly.id, "sent back by hand", TERMS)

        assert resolved.anomaly is not None
        assert await bench.store.anomalies(10, None) == []
        assert (await bench.store.balances())[UNALLOCATED, MINT] == -7_200
        unknown = await bench.store.resolve_anomaly("ano_unknown", "?", TERMS)
        assert unknown.anomaly is None

    async def test_forged_calls_are_counted_and_a_sample_is_kept(self, bench: StoreBench) -> None:
        for number in range(3):
            forged = NewAnomaly(
                key="call:helius:bad_secret",
                reason="bad_secret",
                source="helius",
                raw=b"\x00sample %d" % number,
            )
            await bench.store.note_anomaly(forged)

        anomaly = await the_anomaly(bench)
        assert (anomaly.count, anomaly.raw) == (3, b"\x00sample 2")
        assert await bench.store.anomaly(anomaly.id) == anomaly
        assert await bench.store.anomaly_counts() == {"bad_secret": 1}

    async def test_what_happened_often_is_noted_once_with_its_number(self, bench: StoreBench) -> None:
        for times in (40, 2):
            await bench.store.note_anomaly(NewAnomaly(key="flood", reason="call_forged", times=times))

        assert (await the_anomaly(bench)).count == 42

    async def test_a_list_shows_the_beginning_of_a_large_call_and_a_look_all_of_it(
        self, bench: StoreBench
    ) -> None:
        raw = bytes(range(256)) * 300
        await bench.store.note_anomaly(NewAnomaly(key="large", reason="call_unreadable", raw=raw))

        listed = await the_anomaly(bench)

        assert (listed.raw, listed.raw_size_bytes) == (raw[:RAW_SHOWN_BYTES], len(raw))
        whole = await bench.store.anomaly(listed.id)
        assert whole is not None
        assert (whole.raw, whole.raw_size_bytes) == (raw, len(raw))

    async def test_what_leaves_the_treasury_is_posted_once(self, bench: StoreBench) -> None:
        signature = a_signature()
        outflow = an_outflow(signature, 2**64 - 1)
        verdict = Verdict(signature=signature, slot=5, outflows=(outflow,), reason="treasury_outflow")

        for _ in range(2):
            assert await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS)) == Posted()

        assert (await bench.store.flows())[MINT, TOKENS.address] == (0, 2**64 - 1)
        assert (await bench.store.balances())["chain:outside", MINT] == 2**64 - 1
        assert len(await bench.store.journal(0, 10)) == 1
        assert (await the_anomaly(bench)).reason == "treasury_outflow"

    async def test_what_leaves_beside_a_payment_is_shown_all_the_same(self, bench: StoreBench) -> None:
        quote = await a_quote(bench, await an_instance(bench), treasury=LAMPORTS, price=HOUR.price)
        receipt = a_receipt(bench, quote, 7_200)
        outflow, fee = (an_outflow(receipt.signature, 50, kind) for kind in ("transfer", "fee"))
        for outflows, shown in (((fee,), []), ((fee, outflow), ["treasury_outflow"])):
            verdict = replace(proven(receipt).verdict, outflows=outflows)
            await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS))
            assert [one.reason for one in await bench.store.anomalies(10, None)] == shown

        assert (await the_anomaly(bench)).detail == f"50 of {MINT} from {TOKENS.address}"
