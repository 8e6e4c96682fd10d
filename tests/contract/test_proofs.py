"""Proofs of credit: what the ledger says can be checked without it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tempa.core.errors import Refusal
from tempa.settlement.attestation import Attestor
from tempa.settlement.check import Checked, check_proof
from tempa.settlement.journal import JournalEntry, Posting, customer_account, seal
from tempa.settlement.leaves import receipt_leaf
from tempa.settlement.merkle import leaf_hash, root_of
from tempa.settlement.proof import Proofs
from tempa.settlement.quotes import PriceOffer
from tempa.testing.contracts.bench import StoreBench
from tests.contract.shop import HOUR, LOCK_SECONDS, TERMS, TREASURY, USD, Shop
from tests.contract.test_stores import folder, on_postgres, on_sqlite  # noqa: F401 - a fixture

ATTESTOR = Attestor(b"s" * 32)


@pytest.fixture(params=[on_sqlite, on_postgres], ids=["sqlite", "postgres"])
async def shop(request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    async with request.param(request) as bench:
        yield Shop(bench)


@pytest.fixture
async def lite(folder: Path, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:  # noqa: F811
    async with on_sqlite(request) as bench:
        yield Shop(bench)


def proofs_of(bench: StoreBench, attestor: Attestor | None = ATTESTOR) -> Proofs:
    return Proofs(
        store=bench.store,
        treasury=lambda: TREASURY,
        terms=TERMS,
        clock=bench.clock,
        version="1.2.3",
        attestor=attestor,
    )


async def proof(shop: Shop, signature: str, account: str | None = None) -> dict[str, Any]:
    """As a reader gets it: through JSON."""
    made = await proofs_of(shop.bench).proof(signature, account)
    assert made is not None
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


async def check(shop: Shop, signature: str, account: str | None = None) -> Checked:
    checked = check_proof(await proof(shop, signature, account), ATTESTOR.public_key)
    assert isinstance(checked, Checked), checked
    return checked


async def test_a_payment_is_proven_by_its_document_alone(shop: Shop) -> None:
    gpu = await shop.instance()
    first, second = await shop.quote(gpu), await shop.quote(gpu)
    for quote in (first, second, first):
        await shop.pays(601, quote)
    signature = await shop.pays(601, first)
    await shop.pays(5_000)

    checked = await check(shop, signature)

    # 3 x 601 at half a second each: 901.5 s, of which 601 s were granted by the first two.
    assert checked.seconds == 901 - 601
    assert checked.nodes == ("one", "two")
    assert checked.remarks == ()
    recorded = await shop.bench.store.receipts(0, 100)
    ordered = sorted((one.receipt for one in recorded), key=lambda one: (one.slot, one.index, one.account))
    assert checked.receipts_root == root_of([leaf_hash(receipt_leaf(one)) for one in ordered]).hex()
    document = await proof(shop, signature)
    entries = await shop.bench.store.journal(0, 100)
    assert document["ledger"]["head"]["number"] == len(entries) == 5
    assert document["ledger"]["head"]["hash"] == entries[-1].hash
    assert (
        document["ledger"]["journal"]["root"]
        == root_of([leaf_hash(bytes.fromhex(entry.hash)) for entry in entries]).hex()
    )


async def test_receipts_are_hashed_in_the_chains_order_whenever_they_were_posted(shop: Shop) -> None:
    early, late = shop.lands(100), shop.lands(200)
    untold = shop.lands(300, transactionIndex=None)
    same_slot = shop.lands(400, slot=shop.slot)
    proofs = proofs_of(shop.bench)
    for signature in (late, same_slot, untold):
        await shop.post(signature)
        assert isinstance(check_proof(await proofs.proof(signature)), Checked)
    await shop.post(early)

    indexes = []
    for signature in (early, late, untold, same_slot):
        document = await proofs.proof(signature)
        assert document is not None
        assert isinstance(check_proof(document), Checked)
        indexes.append(document["credits"][0]["inclusion"]["index"])

    assert indexes == [0, 1, 2, 3]


async def test_what_came_late_is_proven_at_the_price_of_its_time(shop: Shop) -> None:
    gpu = await shop.instance()
    quote = await shop.quote(gpu)
    await shop.pays(3_601, quote)
    shop.bench.clock.advance(LOCK_SECONDS + TERMS.lock_tolerance_seconds + 1)
    await shop.bench.store.change_prices(gpu, [PriceOffer(USD, 3, 1)])
    signature = shop.lands(1_000, quote)
    shop.bench.clock.advance(60)
    await shop.bench.store.change_prices(gpu, [PriceOffer(USD, 99, 1)])
    await shop.post(signature)

    checked = await check(shop, signature)

    # 3,601 at 1/2 and 1,000 at 1/3: 1,800 1/2 + 333 1/3 = 2,133 s, of which 1,800 were granted.
    assert checked.seconds == 333
    assert any("after the price lock" in remark and "1/3" in remark for remark in checked.remarks)


async def test_what_a_person_gave_is_proven_by_the_entry_of_that(shop: Shop) -> None:
    quote = await shop.quote(await shop.instance())
    signature = await shop.pays(7_200)
    (anomaly,) = await shop.bench.store.anomalies(10, None)
    waiting = await check(shop, signature)
    await shop.bench.store.resolve_anomaly(anomaly.id, "Ana called", TERMS, quote.id)

    given = await check(shop, signature)

    assert (waiting.seconds, given.seconds) == (0, 3_600)
    assert any("out of suspense" in remark for remark in given.remarks)


async def test_an_account_is_shown_its_own_part_only(shop: Shop) -> None:
    mine = await shop.quote(await shop.instance())
    theirs = await shop.quote(await shop.instance(), account="globex")
    signature = shop.lands(0, mine, theirs)
    both = shop.chain[signature] = shared(shop.chain[signature], mine.reference, theirs.reference)
    assert both
    assert (await shop.post(signature)).credits == 2
    alone = await shop.pays(7_200, theirs)

    document = await proof(shop, signature, "acme")
    checked = check_proof(document, ATTESTOR.public_key)

    assert isinstance(checked, Checked), checked
    assert "globex" not in json.dumps(document)
    assert checked.seconds == 60
    assert checked.remarks == ()
    assert all(entry["body"] is not None for entry in document["entries"])
    assert [entry["body"]["kind"] for entry in document["entries"]] == ["receipt", "share"]
    assert (await check(shop, signature)).seconds == 60 + 30
    assert await proofs_of(shop.bench).proof(alone, "acme") is None
    assert await proofs_of(shop.bench).proof("unknown") is None


async def test_an_entry_of_several_accounts_is_hidden_and_shows_nothing(
    lite: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ledgers have them whose shares were booked together."""
    signature = await lite.pays(7_200, await lite.quote(await lite.instance()))
    (entry,) = await lite.bench.store.journal(0, 10)
    lines = (*entry.draft.postings, Posting(customer_account("globex"), USD, 0))

    async def entries(_: object) -> list[JournalEntry]:
        return [seal(replace(entry.draft, postings=lines), entry.number, entry.previous_hash)]

    monkeypatch.setattr(lite.bench.store, "entries", entries)
    document = await proof(lite, signature, "acme")

    assert "globex" not in json.dumps(document)
    problems = check_proof(document)
    assert isinstance(problems, list)
    assert "No entry of the journal that can be read tells of the receipt." in {one.words for one in problems}


def shared(answer: dict[str, Any], first: str, second: str) -> dict[str, Any]:
    """Two transfers, each with its own reference: 120 and 60."""
    from tests.unit.settlement.verify_samples import paid, transfer

    made = paid(180, keys=(first, second), instructions=(transfer(120, first), transfer(60, second)))
    made["transaction"]["signatures"] = answer["transaction"]["signatures"]
    return {**made, "slot": answer["slot"], "blockTime": answer["blockTime"]}


async def test_a_treasury_that_is_not_known_proves_nothing(lite: Shop) -> None:
    signature = await lite.pays(7_200, await lite.quote(await lite.instance()))

    for treasury, slug in ((None, "payments-not-configured"), (lambda: None, "treasury-unknown")):
        with pytest.raises(Refusal) as refused:
            await replace(proofs_of(lite.bench), treasury=treasury).proof(signature)
        assert refused.value.slug == slug


async def test_the_price_list_of_now_is_not_that_of_then(lite: Shop) -> None:
    """What a late payment bought is not changed by prices that came after it."""
    gpu = await lite.instance(HOUR)
    quote = await lite.quote(gpu)
    lite.bench.clock.advance(LOCK_SECONDS + TERMS.lock_tolerance_seconds + 1)
    signature = lite.lands(7_200, quote)
    lite.bench.clock.advance(5)
    await lite.bench.store.change_prices(gpu, [PriceOffer(USD, 72_000, 3_600)])

    await lite.post(signature)

    shown = await lite.bench.store.quote("acme", quote.id)
    assert shown is not None
    assert shown.granted_seconds == 3_600
