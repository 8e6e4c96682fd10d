"""`GET /v1/payments/{signature}`: how a payment stands, why, what happens next; to whom it belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tempa.settlement.inbox import InboxEnding, InboxState
from tempa.settlement.model import Stray, Verdict
from tempa.settlement.post import Proven
from tempa.settlement.quotes import PriceOffer, QuoteSighting
from tempa.settlement.reasons import REASONS
from tempa.testing.contracts.settlement_steps import (
    LAMPORTS,
    MINT,
    TERMS,
    TOKENS,
    a_quote,
    a_receipt,
    a_signature,
    an_instance,
    heard,
    pay,
    proven,
)
from tests.integration.api.renting import Renting

if TYPE_CHECKING:
    import httpx2

    from tempa.testing.contracts.bench import StoreBench
    from tests.integration.api.conftest import Served

OURS, THEIRS = "acme", "globex"


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


@pytest.fixture
def bench(renting: Renting) -> StoreBench:
    return renting.bench


async def seen(
    renting: Renting, signature: str, account: str = "default", *scopes: str
) -> dict[str, Any] | int:
    """The payment as an account sees it; the status, if it does not."""
    async with renting.client(*scopes, account=account) as client:
        answer = await client.get(f"/v1/payments/{signature}")
    return answer.json() if answer.status_code == 200 else answer.status_code


async def test_one_that_was_heard_of_waits_to_be_looked_up(renting: Renting, bench: StoreBench) -> None:
    signature = a_signature()
    await bench.store.take_in(heard(signature))
    await bench.store.take_in(heard(signature, source="sweep"))

    found = await seen(renting, signature)

    assert isinstance(found, dict)
    assert (found["signature"], found["status"], found["reason"]) == (signature, "pending", None)
    assert "asked again" in found["what_next"]
    assert [entry["source"] for entry in found["heard"]] == ["helius", "sweep"]
    assert {entry["state"] for entry in found["heard"]} == {"pending"}
    assert found["heard"][0]["next_lookup_at"] == found["heard"][0]["received_at"]


async def test_one_that_the_chain_does_not_show_yet_says_so_in_words(
    renting: Renting, bench: StoreBench
) -> None:
    signature = a_signature()
    await bench.store.take_in(heard(signature))
    ending = InboxEnding(
        signature=signature,
        state=InboxState.PENDING,
        reason="not_found_yet",
        detail="node a: null",
        delay_seconds=60,
        spends_attempt=True,
    )
    await bench.store.settle_inbox([ending])

    found = await seen(renting, signature)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("pending", "not_found_yet")
    assert found["message"] == REASONS["not_found_yet"].words
    assert found["heard"][0]["attempts"] == 1
    assert [each["error_trace"] for each in found["anomalies"]] == ["node a: null"]


async def test_one_that_pays_nothing_is_refused_for_good(renting: Renting, bench: StoreBench) -> None:
    signature = a_signature()
    await bench.store.take_in(heard(signature))
    ending = InboxEnding(
        signature=signature, state=InboxState.TERMINAL, reason="nothing_received", is_shown=False
    )
    await bench.store.settle_inbox([ending])

    found = await seen(renting, signature)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("refused", "nothing_received")
    assert found["message"] == REASONS["nothing_received"].words
    assert found["heard"][0]["settled_at"] is not None


async def test_one_that_was_credited_shows_what_it_bought(renting: Renting, bench: StoreBench) -> None:
    gpu = await an_instance(bench)
    quote = await a_quote(bench, gpu, account=OURS)
    receipt = await pay(bench, quote, 7_200)

    found = await seen(renting, receipt.signature, OURS, "payments")

    assert isinstance(found, dict)
    assert (found["status"], found["reason"], found["message"]) == ("credited", None, None)
    (shown,) = found["receipts"]
    assert (shown["asset"], shown["amount"], shown["account"]) == (MINT, "7200", TOKENS.address)
    assert (shown["slot"], shown["payer"], shown["waiting"]) == (receipt.slot, receipt.payer, "0")
    assert shown["block_time"].endswith(".000Z")
    (given,) = shown["allocations"]
    assert (given["quote_id"], given["gpu_instance_id"]) == (quote.id, gpu)
    assert (given["amount"], given["seconds"]) == ("7200", 3_600)
    (instance,) = await bench.store.instances(1, None)
    assert instance.rental is not None
    assert given["current_expiry"][:19] == instance.rental.expires_at.isoformat()[:19]


async def test_money_that_waits_says_why(renting: Renting, bench: StoreBench) -> None:
    """The instance went to another, who paid first."""
    gpu = await an_instance(bench)
    ours, theirs = await a_quote(bench, gpu, account=OURS), await a_quote(bench, gpu, account=THEIRS)
    await pay(bench, theirs, 7_200)
    receipt = await pay(bench, ours, 9_000)

    found = await seen(renting, receipt.signature, OURS, "payments")

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("suspense", "instance_rented")
    assert found["message"] == REASONS["instance_rented"].words
    assert (found["receipts"][0]["waiting"], found["receipts"][0]["allocations"]) == ("9000", [])
    assert found["anomalies"] == []  # what nodes said is the operator's


async def test_money_that_may_not_be_credited_is_in_suspense_too(renting: Renting, bench: StoreBench) -> None:
    signature = a_signature()
    stray = Stray(
        signature=signature, asset=MINT, account=TOKENS.address, amount=500, slot=9, reason="transfer_fee"
    )
    verdict = Verdict(signature=signature, slot=9, strays=(stray,), reason="transfer_fee")
    await bench.store.post_credits(Proven(verdict=verdict, terms=TERMS))

    found = await seen(renting, signature)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"], found["receipts"]) == ("suspense", "transfer_fee", [])
    assert [each["amount"] for each in found["anomalies"]] == ["500"]


async def test_what_the_operator_has_settled_waits_no_more(renting: Renting, bench: StoreBench) -> None:
    receipt = await pay(bench, None, 7_200)
    (anomaly,) = await bench.store.anomalies(1, None)
    await bench.store.resolve_anomaly(anomaly.id, "sent back by hand", TERMS)

    found = await seen(renting, receipt.signature)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("resolved", None)
    assert found["receipts"][0]["waiting"] == "0"
    assert [each["resolution"] for each in found["anomalies"]] == ["sent back by hand"]


async def test_a_payment_is_nobodys_business_but_its_accounts_and_the_operators(
    renting: Renting, bench: StoreBench
) -> None:
    ours = await a_quote(bench, await an_instance(bench), account=OURS)
    credited = await pay(bench, ours, 7_200)
    waiting = await pay(bench, None, 7_200)
    pending = a_signature()
    await bench.store.take_in(heard(pending))

    for signature in (credited.signature, waiting.signature, pending):
        assert await seen(renting, signature, THEIRS) == 404
        assert isinstance(await seen(renting, signature), dict)
    assert isinstance(await seen(renting, credited.signature, OURS), dict)
    assert await seen(renting, pending, OURS) == 404


async def test_it_is_the_accounts_as_soon_as_it_is_seen_to_name_its_quote(
    renting: Renting, bench: StoreBench
) -> None:
    quote = await a_quote(bench, await an_instance(bench), account=OURS)
    signature = a_signature()
    await bench.store.take_in(heard(signature))
    sighting = QuoteSighting(quote.reference, "", 7, signature, is_final=False)
    await bench.store.note_progress([sighting])

    found = await seen(renting, signature, OURS)

    assert isinstance(found, dict)
    assert found["status"] == "pending"
    assert await seen(renting, signature, THEIRS) == 404


async def test_a_quote_may_know_of_it_before_the_inbox_does(renting: Renting, bench: StoreBench) -> None:
    quote = await a_quote(bench, await an_instance(bench), account=OURS)
    signature = a_signature()
    await bench.store.note_progress([QuoteSighting(quote.reference, "", 7, signature, is_final=False)])

    found = await seen(renting, signature, OURS)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"], found["heard"]) == ("pending", None, [])


async def test_who_is_named_sees_why_money_for_no_quote_waits(renting: Renting, bench: StoreBench) -> None:
    """The memo names another quote than the reference does."""
    gpu = await an_instance(bench)
    ours, other = await a_quote(bench, gpu, account=OURS), await a_quote(bench, gpu, account=OURS)
    receipt = a_receipt(bench, ours, 7_200, memos=(f"tempa:{other.id}",))
    await bench.store.note_progress([QuoteSighting(ours.reference, "", 7, receipt.signature, is_final=False)])
    await bench.store.post_credits(proven(receipt))

    found = await seen(renting, receipt.signature, OURS)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("suspense", "memo_mismatch")
    assert found["receipts"][0]["waiting"] == "7200"
    assert await seen(renting, receipt.signature, THEIRS) == 404


async def test_who_paid_too_little_sees_that_it_waits(renting: Renting, bench: StoreBench) -> None:
    """Also where the payment was never seen before it was booked, and once it went to another quote."""
    quote = await a_quote(bench, await an_instance(bench), account=OURS)
    receipt = a_receipt(bench, quote, 1)
    await bench.store.take_in(heard(receipt.signature))
    await bench.store.post_credits(proven(receipt))

    found = await seen(renting, receipt.signature, OURS)

    assert isinstance(found, dict)
    assert (found["status"], found["reason"]) == ("suspense", "dust")
    assert [one["state"] for one in found["heard"]] == ["suspense"]
    assert await seen(renting, receipt.signature, THEIRS) == 404

    (anomaly,) = await bench.store.anomalies_of(receipt.signature)
    other = await a_quote(bench, await an_instance(bench), account=THEIRS)
    await bench.store.resolve_anomaly(anomaly.id, "for the other", TERMS, other.id)
    released = await seen(renting, receipt.signature, OURS)
    assert isinstance(released, dict)
    assert released["status"] == "resolved"


async def test_of_a_transaction_that_pays_two_accounts_each_sees_its_own(
    renting: Renting, bench: StoreBench
) -> None:
    mine = await a_quote(bench, await an_instance(bench), account=OURS)
    price = PriceOffer("SOL", 1, 1)
    gpu = await an_instance(bench, price)
    other = await a_quote(bench, gpu, account=THEIRS, price=price.price, treasury=LAMPORTS)
    first = a_receipt(bench, mine, 7_200)
    second = a_receipt(bench, other, 500, signature=first.signature)
    await bench.store.post_credits(proven(first, second))

    found = await seen(renting, first.signature, OURS)
    whole = await seen(renting, first.signature)

    assert isinstance(found, dict)
    assert isinstance(whole, dict)
    assert [shown["amount"] for shown in found["receipts"]] == ["7200"]
    assert other.id not in str(found)
    assert sorted(shown["amount"] for shown in whole["receipts"]) == ["500", "7200"]


@pytest.mark.parametrize("signature", ["x", "1" * 64 + "0", "1" * 90, "ingress"])
async def test_what_is_no_signature_is_not_found(http: httpx2.AsyncClient, signature: str) -> None:
    answer = await http.get(f"/v1/payments/{signature}")

    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_one_that_nobody_has_heard_of_is_not_found(renting: Renting) -> None:
    assert await seen(renting, a_signature()) == 404


async def test_it_takes_the_scope(renting: Renting) -> None:
    assert await seen(renting, a_signature(), OURS, "jobs:read") == 403
