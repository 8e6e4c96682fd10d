"""Every shape of payment that the development chain plays, in every encoding that nodes give."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import pytest

from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.settlement.treasury import mint_fault
from tempa.settlement.verify import verify
from tempa.testing.devchain.fixtures import cases
from tempa.testing.devchain.fixtures.case import CASES

ENCODINGS = ("jsonParsed", "json", "base64", "base58")


@cache
def played() -> dict[str, dict[str, Any]]:
    return {case["name"]: case for case in cases()}


def treasury_of(case: dict[str, Any]) -> Treasury:
    """The allow-list; what its mints refuse is found by our own watch, not taken over."""
    rows = (
        TreasuryAccount(**{**row, "extensions": frozenset(row["extensions"]), "refusal": None})
        for row in case["treasury"]["accounts"]
    )
    watched = (
        row if row.asset == SOL else _refused(row, mint_fault(row, case["mints"][row.asset])) for row in rows
    )
    return Treasury(cluster=case["treasury"]["cluster"], accounts=tuple(watched))


def _refused(row: TreasuryAccount, refusal: str | None) -> TreasuryAccount:
    names = row.__dataclass_fields__
    return TreasuryAccount(**{name: getattr(row, name) for name in names} | {"refusal": refusal})


def told(rows: Any) -> set[tuple[str, str, int]]:
    return {(row["asset"], row["account"], row["amount"]) for row in rows}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", sorted(CASES))
def test_it_comes_to_what_was_paid(name: str, encoding: str) -> None:
    case = played()[name]

    verdict = verify(case["encodings"][encoding], treasury_of(case), case["signature"])

    assert verdict.reason == case["refused"]
    assert {(one.asset, one.account, one.amount) for one in verdict.receipts} == told(case["expected"])
    assert len(verdict.receipts) == len(case["expected"])
    moved = {(flow.asset, flow.account, flow.amount) for flow in verdict.outflows if flow.kind == "transfer"}
    assert moved == told(case["outflows"])
    for receipt in verdict.receipts:
        assert case["payer"] in {None, receipt.payer}
        assert case["references"] is None or set(receipt.references) == set(case["references"])
        assert case["memos"] is None or list(receipt.memos) == list(case["memos"])


def test_two_invoices_in_one_transaction_are_told_apart() -> None:
    case = played()["two-invoices"]

    for encoding in ENCODINGS:
        (receipt,) = verify(case["encodings"][encoding], treasury_of(case), case["signature"]).receipts
        parts = {part.references: part.amount for part in receipt.parts}

        assert sorted(parts.values()) == [1_000_000, 2_000_000]
        assert {reference for references in parts for reference in references} == set(case["references"])


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_encoding_tells_the_same(name: str) -> None:
    """Who paid, for what, and by which transfers: what a node parses, and what we read from the bytes."""
    case = played()[name]
    verdicts = [verify(case["encodings"][one], treasury_of(case), case["signature"]) for one in ENCODINGS]

    told = {
        tuple(
            (one.asset, one.payer, one.references, one.memos, tuple(part.amount for part in one.parts))
            for one in verdict.receipts
        )
        for verdict in verdicts
    }
    assert len(told) == 1


def test_the_fee_that_the_treasury_paid_is_on_record() -> None:
    case = played()["treasury-fee-payer"]
    verdict = verify(case["transaction"], treasury_of(case), case["signature"])

    assert [(flow.kind, flow.amount) for flow in verdict.outflows] == [("fee", 2 * 5000)]


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_answer_cut_anywhere_credits_more(name: str) -> None:
    """Of the bytes of a transaction, a start is unreadable, and so is what has more behind it."""
    case = played()[name]
    answer = case["encodings"]["base64"]
    text = answer["transaction"][0]

    longer = base64.b64encode(base64.b64decode(text) + b"\0").decode()
    assert not verify(
        {**answer, "transaction": [longer, "base64"]}, treasury_of(case), case["signature"]
    ).receipts
    for end in range(0, len(text) - 4, 40):
        verdict = verify(
            {**answer, "transaction": [text[:end], "base64"]}, treasury_of(case), case["signature"]
        )
        assert not verdict.receipts
