"""Random tables of balances against a slow second reading of the rule; and garbage, which never credits."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tempa.settlement.model import SOL, Verdict
from tempa.settlement.reasons import REASONS
from tempa.settlement.verify import verify
from tests.unit.settlement.verify_samples import (
    EUR,
    EUR_ACCOUNT,
    PAYER,
    SIGNATURE,
    TOKEN,
    TOKEN_2022,
    TREASURY,
    USD,
    USD_ACCOUNT,
    WALLET,
    WRAPPED_SOL,
    Held,
    answer,
    key,
    memo,
    paid,
    transfer,
)

U64_MAX = 2**64 - 1
MINTS = {USD: (TOKEN, 6), EUR: (TOKEN_2022, 2), key("spoof"): (TOKEN, 6), WRAPPED_SOL: (TOKEN, 9)}

amounts = st.one_of(st.integers(0, 9), st.integers(0, U64_MAX))
holdings = st.builds(
    lambda address, before, after, mint, owner, old: Held(
        address, before, after, mint=mint, owner=owner, program=MINTS[mint][0], decimals=MINTS[mint][1],
        mint_before=old,
    ),
    st.sampled_from([USD_ACCOUNT, EUR_ACCOUNT, key("aux"), key("shop")]),
    st.none() | amounts,
    st.none() | amounts,
    st.sampled_from(sorted(MINTS)),
    st.sampled_from([WALLET, PAYER]),
    st.none() | st.sampled_from(sorted(MINTS)),
)  # fmt: skip
tables = st.tuples(
    st.lists(holdings, max_size=4, unique_by=lambda held: held.address),
    st.none() | st.tuples(amounts, amounts),
    st.integers(0, 10**6),
    st.booleans(),
)


def slow_reading(
    document: dict[str, Any],
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str, str], int]]:
    """Receipts and outflows of the sample treasury, row by row and by searching, from the raw answer."""
    keys = [entry["pubkey"] for entry in document["transaction"]["message"]["accountKeys"]]
    meta = document["meta"]

    def units(table: str, address: str, mint: str) -> int:
        rows = [row for row in meta[table] if keys[row["accountIndex"]] == address and row["mint"] == mint]
        return sum(int(row["uiTokenAmount"]["amount"]) for row in rows)

    gains: dict[tuple[str, str], int] = {}
    losses: dict[tuple[str, str, str], int] = {}
    for asset, address in ((USD, USD_ACCOUNT), (EUR, EUR_ACCOUNT)):
        change = units("postTokenBalances", address, asset) - units("preTokenBalances", address, asset)
        sound = any(
            keys[row["accountIndex"]] == address and row["mint"] == asset and row["owner"] == WALLET
            for row in meta["postTokenBalances"]
        )
        if change > 0 and sound:
            gains[asset, address] = change
        if change < 0:
            losses[asset, address, "transfer"] = -change
    if WALLET in keys:
        place = keys.index(WALLET)
        change = meta["postBalances"][place] - meta["preBalances"][place]
        if place == 0 and meta["fee"]:
            change += meta["fee"]
            losses[SOL, WALLET, "fee"] = meta["fee"]
        if change > 0:
            gains[SOL, WALLET] = change
        if change < 0:
            losses[SOL, WALLET, "transfer"] = -change
    return gains, losses


@settings(max_examples=600, deadline=None)
@given(tables)
def test_receipts_are_the_gains_of_the_listed_accounts_and_nothing_else(table: Any) -> None:
    held, lamports, fee, treasury_first = table
    moved = {WALLET: lamports} if lamports is not None else {}
    signers = (WALLET, PAYER) if treasury_first else (PAYER,)
    document = answer(*held, lamports=moved, fee=fee, signers=signers)

    verdict = verify(document, TREASURY, SIGNATURE)

    gains, losses = slow_reading(document)
    assert {(one.asset, one.account): one.amount for one in verdict.receipts} == gains
    assert {(one.asset, one.account, one.kind): one.amount for one in verdict.outflows} == losses
    assert (verdict.reason is None) == bool(gains)


@settings(max_examples=200, deadline=None)
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_keys_and_rows_changes_nothing(table: Any, dice: random.Random) -> None:
    held, lamports, fee, _ = table
    document = answer(*held, lamports={WALLET: lamports} if lamports else {}, fee=fee)
    shuffled = permuted(document, dice)

    one, other = verify(document, TREASURY, SIGNATURE), verify(shuffled, TREASURY, SIGNATURE)

    assert {(r.asset, r.amount, r.payer) for r in one.receipts} == {
        (r.asset, r.amount, r.payer) for r in other.receipts
    }
    assert {(r.asset, r.kind, r.amount) for r in one.outflows} == {
        (r.asset, r.kind, r.amount) for r in other.outflows
    }


def permuted(document: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """The same transaction with its keys, all but the fee payer's, in another order."""
    changed = copy.deepcopy(document)
    meta, message = changed["meta"], changed["transaction"]["message"]
    count = len(message["accountKeys"])
    order = [0, *dice.sample(range(1, count), count - 1)]
    message["accountKeys"] = [message["accountKeys"][old] for old in order]
    for name in ("preBalances", "postBalances"):
        meta[name] = [meta[name][old] for old in order]
    for name in ("preTokenBalances", "postTokenBalances"):
        for row in meta[name]:
            row["accountIndex"] = order.index(row["accountIndex"])
        dice.shuffle(meta[name])
    return changed


def is_sound(verdict: Verdict) -> bool:
    return verdict.reason is None or verdict.reason in REASONS


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from([SIGNATURE, USD, USD_ACCOUNT, WALLET, TOKEN, "5", str(2**64), "\ud800", "base64"])
)
names = st.sampled_from(
    ["slot", "blockTime", "meta", "err", "fee", "transaction", "message", "accountKeys", "instructions",
     "signatures", "preBalances", "postBalances", "preTokenBalances", "postTokenBalances", "uiTokenAmount",
     "amount", "decimals", "mint", "owner", "programId", "accountIndex", "pubkey", "parsed", "info", "type",
     "innerInstructions", "loadedAddresses", "header", "programIdIndex", "accounts", "data"]
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(names | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)


@settings(max_examples=600, deadline=None)
@given(values)
def test_garbage_is_unreadable(garbage: Any) -> None:
    verdict = verify(garbage, TREASURY, SIGNATURE)

    assert is_sound(verdict)
    assert not verdict.receipts


def whole() -> dict[str, Any]:
    batch = {"programId": TOKEN, "accounts": [USD_ACCOUNT] * 8, "data": "5"}
    steps = (memo("tempa:q"), transfer(40, key("ref")), batch)
    return paid(40, instructions=steps, inner=({"index": 1, "instructions": [transfer(1)]},))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, child in inner for place in places(child, (*path, name)))]


PLACES = places(whole())


def with_fault(document: Any, path: tuple[Any, ...], fault: Any) -> Any:
    if not path:
        return fault
    at = document
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = fault
    return document


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(PLACES), values)
def test_one_wrong_value_anywhere_never_raises_nor_credits_another_amount(
    path: tuple[Any, ...], fault: Any
) -> None:
    """What still credits, credits what its balances say: a change of these is another transaction."""
    verdict = verify(with_fault(whole(), path, fault), TREASURY, SIGNATURE)

    assert is_sound(verdict)
    if "amount" not in path and not {"preTokenBalances", "preBalances", "postBalances"} & set(path):
        assert [one.amount for one in verdict.receipts if one.asset == USD] in ([], [40])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES[1:]))
def test_one_missing_value_anywhere_never_raises(path: tuple[Any, ...]) -> None:
    document = whole()
    at: Any = document
    for name in path[:-1]:
        at = at[name]
    del at[path[-1]]

    assert is_sound(verify(document, TREASURY, SIGNATURE))


def test_nothing_but_an_error_of_null_is_success() -> None:
    errors: tuple[Any, ...] = (False, 0, "", [], {}, "null", {"Ok": None}, 10**5000, float("nan"))
    for error in errors:
        document = paid(5)
        document["meta"]["err"] = error
        assert not verify(document, TREASURY, SIGNATURE).receipts


def test_numbers_that_are_none_credit_nothing() -> None:
    text = json.dumps(paid(5)).replace('"fee": 5000', '"fee": NaN')

    assert verify(json.loads(text), TREASURY, SIGNATURE).reason == "answer_unreadable"


def test_nesting_without_end_is_unreadable() -> None:
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    document = paid(5, instructions=({"program": "x", "programId": TOKEN, "parsed": deep},))

    assert is_sound(verify({**document, "slot": deep}, TREASURY, SIGNATURE))
    assert is_sound(verify(document, TREASURY, SIGNATURE))
    document["meta"]["err"] = deep
    assert not verify(document, TREASURY, SIGNATURE).receipts
