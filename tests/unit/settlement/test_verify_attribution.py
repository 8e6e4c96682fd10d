"""Which quote a receipt is for: references first, memos second, and suspense where it cannot be told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.settlement.attribution import attribute, memo_for, memo_quotes
from tempa.settlement.model import Attribution, Invoice, Part, Receipt, Share
from tempa.settlement.reasons import REASONS, Kind
from tests.unit.settlement.verify_samples import CLUSTER, EUR, SIGNATURE, USD, USD_ACCOUNT, key

ONE, TWO = Invoice("quo_1", key("one"), USD), Invoice("quo_2", key("two"), USD)
OTHER = Invoice("quo_3", key("three"), EUR)


def receipt(amount: int = 100, **more: Any) -> Receipt:
    return Receipt(
        cluster=CLUSTER,
        signature=SIGNATURE,
        asset=USD,
        account=USD_ACCOUNT,
        amount=amount,
        slot=1,
        index=None,
        block_time=None,
        payer=None,
        **more,
    )


def test_one_reference_takes_all() -> None:
    found = attribute(receipt(references=(key("stranger"), ONE.reference)), [ONE])

    assert found == Attribution((Share("quo_1", 100),))


def test_a_memo_stands_in_for_a_reference() -> None:
    paid = receipt(memos=("hello", "tempa:quo_1"))

    assert memo_quotes(paid) == {"quo_1"}
    assert attribute(paid, [ONE]) == Attribution((Share("quo_1", 100),))


def test_a_memo_that_names_the_same_quote_changes_nothing() -> None:
    paid = receipt(references=(ONE.reference,), memos=(memo_for("quo_1"),))

    assert attribute(paid, [ONE]) == Attribution((Share("quo_1", 100),))


@pytest.mark.parametrize(
    ("more", "invoices", "reason"),
    [
        ({}, [], "no_reference"),
        ({"references": (key("stranger"),), "memos": ("tempa:quo_9",)}, [], "no_reference"),
        ({"references": (ONE.reference,), "memos": (memo_for("quo_2"),)}, [ONE, TWO], "memo_mismatch"),
        ({"memos": (memo_for("quo_1"), memo_for("quo_2"))}, [ONE, TWO], "several_quotes"),
        ({"references": (OTHER.reference,)}, [OTHER], "asset_mismatch"),
        ({"memos": (memo_for("quo_3"),)}, [OTHER], "asset_mismatch"),
        ({"references": (OTHER.reference,), "memos": (memo_for("quo_1"),)}, [OTHER, ONE], "asset_mismatch"),
        ({"references": (ONE.reference, TWO.reference)}, [ONE, TWO], "several_quotes"),
    ],
    ids=["nothing", "unknown", "disagree", "memos", "asset", "memo-asset", "reference-asset", "no-parts"],
)
def test_what_cannot_be_told_waits_for_a_person(
    more: dict[str, Any], invoices: list[Invoice], reason: str
) -> None:
    found = attribute(receipt(**more), invoices)

    assert found == Attribution(reason=reason)
    assert REASONS[reason].kind is Kind.HOLD


def test_two_quotes_of_two_assets_share_no_receipt() -> None:
    paid = receipt(references=(ONE.reference, OTHER.reference))

    assert attribute(paid, [ONE, OTHER]) == Attribution((Share("quo_1", 100),))


@pytest.mark.parametrize(
    "parts",
    [
        (Part(60, (ONE.reference,)), Part(40, ())),
        (Part(60, (ONE.reference,)), Part(40, (ONE.reference, TWO.reference))),
        (Part(60, (ONE.reference,)), Part(39, (TWO.reference,))),
    ],
    ids=["unlabelled", "two-labels", "short"],
)
def test_transfers_that_do_not_name_one_quote_each_are_not_split(parts: tuple[Part, ...]) -> None:
    paid = receipt(references=(ONE.reference, TWO.reference), parts=parts)

    assert attribute(paid, [ONE, TWO]) == Attribution(reason="several_quotes")


@given(st.lists(st.tuples(st.integers(1, 10**12), st.sampled_from([ONE, TWO])), min_size=1, max_size=9))
def test_shares_are_the_sums_of_the_transfers(transfers: list[tuple[int, Invoice]]) -> None:
    parts = tuple(Part(amount, (invoice.reference,)) for amount, invoice in transfers)
    total = sum(part.amount for part in parts)
    references = tuple(sorted({invoice.reference for _, invoice in transfers}))

    found = attribute(receipt(total, references=references, parts=parts), [ONE, TWO])

    assert found.reason is None
    assert {share.quote_id: share.amount for share in found.shares} == {
        quote: sum(amount for amount, invoice in transfers if invoice.quote_id == quote)
        for quote in {invoice.quote_id for _, invoice in transfers}
    }
