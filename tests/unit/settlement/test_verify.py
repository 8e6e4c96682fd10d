"""Each rule of verification, on answers made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tempa.core.base58 import encode
from tempa.settlement.model import SOL, Outflow, Part, Receipt, Verdict
from tempa.settlement.verify import verify
from tests.unit.settlement.verify_samples import (
    CLUSTER,
    EUR,
    EUR_ACCOUNT,
    MEMO,
    PAYER,
    PAYER_USD,
    RELAYER,
    SIGNATURE,
    SOL_ROW,
    SYSTEM,
    TOKEN,
    TOKEN_2022,
    TREASURY,
    USD,
    USD_ACCOUNT,
    USD_ROW,
    WALLET,
    WRAPPED_SOL,
    Held,
    answer,
    key,
    memo,
    paid,
    signature_of,
    transfer,
)

U64_MAX = 2**64 - 1


def judged(document: Any, **changes: Any) -> Verdict:
    return verify(document, replace(TREASURY, **changes), SIGNATURE)


def gains(verdict: Verdict) -> dict[str, int]:
    return {receipt.asset: receipt.amount for receipt in verdict.receipts}


def outflows(verdict: Verdict) -> dict[tuple[str, str], int]:
    return {(flow.asset, flow.kind): flow.amount for flow in verdict.outflows}


def test_a_receipt_tells_what_the_chain_shows() -> None:
    verdict = judged(paid(2_500_000, instructions=(memo("tempa:q"), transfer(2_500_000, key("ref"))),
                          keys=(key("ref"),), transactionIndex=9))  # fmt: skip

    assert verdict.reason is None
    assert verdict.receipts == (
        Receipt(
            cluster=CLUSTER,
            signature=SIGNATURE,
            asset=USD,
            account=USD_ACCOUNT,
            amount=2_500_000,
            slot=400,
            index=9,
            block_time=1_790_000_000,
            payer=PAYER,
            references=(key("ref"),),
            memos=("tempa:q",),
            parts=(Part(2_500_000, (key("ref"),)),),
        ),
    )


@pytest.mark.parametrize("text", ["", "abc", "1" * 64 + "0", SIGNATURE[:60], key("short"), SIGNATURE + "1"])
def test_what_is_no_signature_is_refused_for_good(text: str) -> None:
    assert verify(paid(5), TREASURY, text).reason == "invalid_signature"


def test_an_answer_about_another_transaction_credits_nothing() -> None:
    verdict = verify(paid(5), TREASURY, signature_of("another"))

    assert verdict.reason == "answer_mismatch"
    assert not verdict.receipts


def test_a_failed_transaction_pays_nothing_whatever_its_balances_say() -> None:
    verdict = judged(paid(5, error={"InstructionError": [0, {"Custom": 1}]}))

    assert (verdict.reason, verdict.receipts, verdict.outflows) == ("transaction_failed", (), ())
    assert verdict.error == '{"InstructionError": [0, {"Custom": 1}]}'


def test_the_fee_of_a_failed_transaction_leaves_the_treasury_that_sent_it() -> None:
    verdict = judged(answer(signers=(WALLET,), fee=7000, error="AccountInUse"))

    assert verdict.reason == "transaction_failed"
    assert outflows(verdict) == {(SOL, "fee"): 7000}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"meta": None}, "meta_missing"),
        ({"slot": True}, "answer_unreadable"),
        ({"slot": -1}, "answer_unreadable"),
        ({"slot": 2**63}, "answer_unreadable"),  # more than a store keeps
        ({"transactionIndex": 2**31}, "answer_unreadable"),
        ({"blockTime": 1.5}, "answer_unreadable"),
        ({"blockTime": "1790000000"}, "answer_unreadable"),
        ({"transaction": None}, "answer_unreadable"),
        ({"transaction": ["!!!", "base64"]}, "answer_unreadable"),
        ({"transaction": ["AAAA", "zstd"]}, "answer_unreadable"),
    ],
)
def test_a_broken_answer_is_told_as_such(change: dict[str, Any], reason: str) -> None:
    verdict = judged({**paid(5), **change})

    assert (verdict.reason, verdict.receipts) == (reason, ())


@pytest.mark.parametrize("missing", ["err", "fee", "preBalances", "postBalances"])
def test_an_answer_that_leaves_out_what_decides_is_unreadable(missing: str) -> None:
    document = paid(5)
    del document["meta"][missing]

    assert judged(document).reason == "answer_unreadable"


@pytest.mark.parametrize("missing", ["preTokenBalances", "postTokenBalances"])
def test_a_node_that_kept_no_token_balances_is_not_believed(missing: str) -> None:
    document = paid(5)
    document["meta"][missing] = None

    assert judged(document).reason == "meta_missing"


def test_success_that_contradicts_itself_is_unreadable() -> None:
    document = paid(5)
    document["meta"]["status"] = {"Err": "AccountInUse"}

    assert judged(document).reason == "answer_unreadable"


@pytest.mark.parametrize("index", [99, -1, True, "1", None, 1.0])
def test_an_index_beyond_the_keys_is_unreadable(index: Any) -> None:
    document = paid(5)
    document["meta"]["postTokenBalances"][0]["accountIndex"] = index

    assert judged(document).reason == "answer_unreadable"


def test_two_rows_for_one_account_are_unreadable() -> None:
    document = paid(5)
    document["meta"]["postTokenBalances"].append(document["meta"]["postTokenBalances"][0])

    assert judged(document).reason == "answer_unreadable"


def test_a_key_listed_twice_is_unreadable() -> None:
    document = paid(5)
    document["transaction"]["message"]["accountKeys"][0]["pubkey"] = USD_ACCOUNT

    assert judged(document).reason == "answer_unreadable"


@pytest.mark.parametrize(
    "amount", [5, 5.25, "5.0", "-5", "", "٣", "1e3", " 5", str(2**64), "9" * 21, None, True]
)
def test_an_amount_that_is_no_u64_in_digits_is_unreadable(amount: Any) -> None:
    document = paid(5)
    document["meta"]["postTokenBalances"][0]["uiTokenAmount"]["amount"] = amount

    assert judged(document).reason == "answer_unreadable"


def test_the_largest_amount_is_counted_to_the_last_unit() -> None:
    verdict = judged(answer(Held(USD_ACCOUNT, None, U64_MAX), lamports={WALLET: (0, U64_MAX)}))

    assert gains(verdict) == {USD: U64_MAX, SOL: U64_MAX}


def test_a_new_account_held_nothing_before() -> None:
    assert gains(judged(answer(Held(USD_ACCOUNT, None, 60)))) == {USD: 60}


def test_several_accounts_of_the_treasury_have_a_receipt_each() -> None:
    verdict = judged(
        answer(
            Held(USD_ACCOUNT, 1, 6),
            Held(EUR_ACCOUNT, 0, 7, mint=EUR, program=TOKEN_2022, decimals=2),
            lamports={WALLET: (100, 108)},
        )
    )

    assert gains(verdict) == {USD: 5, EUR: 7, SOL: 8}


def test_the_fee_that_the_treasury_paid_is_added_back_and_recorded() -> None:
    verdict = judged(answer(signers=(WALLET, PAYER), fee=5000, lamports={WALLET: (9000, 9000 + 300 - 5000)}))

    assert gains(verdict) == {SOL: 300}
    assert outflows(verdict) == {(SOL, "fee"): 5000}


def test_a_fee_alone_is_an_outflow_and_no_transfer() -> None:
    verdict = judged(answer(signers=(WALLET,), fee=5000))

    assert verdict.reason == "treasury_outflow"
    assert outflows(verdict) == {(SOL, "fee"): 5000}


def test_what_leaves_is_recorded_and_not_credited() -> None:
    verdict = judged(answer(Held(USD_ACCOUNT, 9, 4), lamports={WALLET: (50, 20)}))

    assert verdict.reason == "treasury_outflow"
    assert outflows(verdict) == {(USD, "transfer"): 5, (SOL, "transfer"): 30}
    assert verdict.outflows[0] == Outflow(
        cluster=CLUSTER, signature=SIGNATURE, asset=USD, account=USD_ACCOUNT, kind="transfer", amount=5,
        slot=400, index=None, block_time=1_790_000_000,
    )  # fmt: skip


def test_a_closed_account_lets_go_of_all_it_held() -> None:
    assert outflows(judged(answer(Held(USD_ACCOUNT, 9, None)))) == {(USD, "transfer"): 9}


def test_nothing_moved_is_nothing_received() -> None:
    verdict = judged(answer(Held(USD_ACCOUNT, 9, 9), instructions=(transfer(5),)))

    assert (verdict.reason, verdict.outflows, verdict.strays) == ("nothing_received", (), ())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"owner": PAYER}, "wrong_owner"),
        ({"owner": None}, "wrong_owner"),
        ({"program": TOKEN_2022}, "wrong_program"),
        ({"program": None}, "wrong_program"),
        ({"mint": key("spoof")}, "wrong_mint"),
        ({"decimals": 9}, "wrong_decimals"),
    ],
)
def test_a_listed_account_that_is_not_as_pinned_takes_nothing(change: dict[str, Any], reason: str) -> None:
    verdict = judged(answer(replace(Held(USD_ACCOUNT, 0, 5), **change)))

    assert (verdict.reason, verdict.receipts) == (reason, ())
    assert [(stray.account, stray.amount, stray.reason) for stray in verdict.strays] == [
        (USD_ACCOUNT, 5, reason)
    ]


def test_an_account_opened_anew_for_our_mint_held_nothing_of_it_before() -> None:
    verdict = judged(answer(Held(USD_ACCOUNT, 900, 5, mint_before=key("other"))))

    assert gains(verdict) == {USD: 5}


def test_a_row_that_is_refused_takes_nothing_and_loses_nothing_from_sight() -> None:
    refused = replace(USD_ROW, refusal="transfer_hook"), replace(SOL_ROW, refusal="account_missing")
    verdict = judged(answer(Held(USD_ACCOUNT, 0, 5), lamports={WALLET: (0, 6)}), accounts=refused)

    assert not verdict.receipts
    assert [(stray.asset, stray.amount, stray.reason) for stray in verdict.strays] == [
        (USD, 5, "transfer_hook"),
        (SOL, 6, "account_missing"),
    ]


@pytest.mark.parametrize(
    ("mint", "reason"),
    [(key("spoof"), "mint_not_allowed"), (WRAPPED_SOL, "wrapped_sol"), (USD, "account_not_listed")],
)
def test_what_comes_to_another_account_of_the_wallet_waits_for_a_person(mint: str, reason: str) -> None:
    verdict = judged(answer(Held(key("elsewhere"), 1, 4, mint=mint)))

    assert (verdict.reason, verdict.receipts) == (reason, ())
    assert [(stray.asset, stray.account, stray.amount) for stray in verdict.strays] == [
        (mint, key("elsewhere"), 3)
    ]


def test_a_stray_beside_a_payment_takes_nothing_from_it() -> None:
    verdict = judged(answer(Held(USD_ACCOUNT, 0, 5), Held(key("elsewhere"), 0, 4, mint=key("spoof"))))

    assert verdict.reason is None
    assert gains(verdict) == {USD: 5}
    assert [stray.reason for stray in verdict.strays] == ["mint_not_allowed"]


def test_wrapped_sol_is_an_asset_of_its_own_where_its_row_is_listed() -> None:
    row = replace(USD_ROW, asset=WRAPPED_SOL, address=key("wrapped"), decimals=9)
    verdict = judged(
        answer(Held(key("wrapped"), None, 70, mint=WRAPPED_SOL, decimals=9)), accounts=(SOL_ROW, row)
    )

    assert gains(verdict) == {WRAPPED_SOL: 70}


def test_strangers_money_is_none_of_ours() -> None:
    verdict = judged(answer(Held(key("shop"), 0, 5, owner=RELAYER), keys=(USD_ACCOUNT, WALLET)))

    assert (verdict.reason, verdict.strays) == ("nothing_received", ())


def test_a_chain_without_time_still_pays() -> None:
    verdict = judged(paid(5, blockTime=None))

    assert verdict.receipts[0].block_time is None


def test_a_relayer_is_not_the_payer() -> None:
    assert judged(paid(5, signers=(RELAYER, PAYER))).receipts[0].payer == PAYER


def test_who_pays_sol_is_whose_balance_fell_by_more_than_the_fee() -> None:
    moved = {WALLET: (0, 40), PAYER: (100, 60)}
    verdict = judged(answer(signers=(RELAYER, PAYER), lamports=moved))

    assert verdict.receipts[0].payer == PAYER


def test_of_several_losers_the_authority_of_the_transfer_is_the_payer() -> None:
    held = (
        Held(USD_ACCOUNT, 0, 5),
        Held(PAYER_USD, 9, 4, owner=PAYER),
        Held(key("third"), 9, 8, owner=RELAYER),
        Held(key("fourth"), 0, 1, owner=key("fifth")),
    )

    assert judged(answer(*held, instructions=(transfer(5),))).receipts[0].payer == PAYER
    assert judged(answer(*held)).receipts[0].payer is None


def test_references_are_keys_that_do_nothing() -> None:
    extra = (
        key("ref one"),
        USD,
        PAYER_USD,
        WALLET,
        "SysvarRent111111111111111111111111111111111",
        key("two"),
    )
    verdict = judged(paid(5, keys=extra, instructions=(transfer(5), memo("x"))))

    assert verdict.receipts[0].references == (key("ref one"), key("two"))


def test_a_key_whose_balance_moved_is_no_reference() -> None:
    verdict = judged(paid(5, lamports={key("friend"): (0, 9)}, keys=(key("ref"),)))

    assert verdict.receipts[0].references == (key("ref"),)


def test_the_treasury_is_not_its_own_payer_beside_another() -> None:
    held = (
        Held(USD_ACCOUNT, 0, 7),
        Held(key("elsewhere"), 9, 0),
        Held(PAYER_USD, 9, 4, owner=PAYER),
    )

    assert judged(answer(*held)).receipts[0].payer == PAYER


def test_memos_are_read_before_behind_and_within() -> None:
    within = {"index": 1, "instructions": [memo("within")]}
    raw: dict[str, Any] = {"programId": MEMO, "accounts": [], "data": encode(b"raw"), "stackHeight": None}
    verdict = judged(
        paid(5, instructions=(memo("before"), transfer(5), memo("behind"), raw), inner=(within,))
    )

    assert verdict.receipts[0].memos == ("before", "within", "behind", "raw")


@pytest.mark.parametrize(("text", "kept"), [("a\0b", "a\ufffdb"), ("a\ud800b", "a?b")])
def test_a_memo_that_no_database_keeps_is_made_fit(text: str, kept: str) -> None:
    verdict = judged(paid(5, instructions=(memo(text),)))

    assert verdict.receipts[0].memos == (kept,)


def test_a_memo_of_bytes_that_are_no_text_is_none() -> None:
    raw: dict[str, Any] = {
        "programId": MEMO,
        "accounts": [],
        "data": encode(b"\xff\xfe"),
        "stackHeight": None,
    }

    assert judged(paid(5, instructions=(raw,))).receipts[0].memos == ()


def test_parts_are_told_only_if_they_sum_to_the_gain() -> None:
    one, two = transfer(3, key("a")), transfer(2, key("b"))
    told = paid(5, keys=(key("a"), key("b")), instructions=(one, two))
    short = paid(6, keys=(key("a"), key("b")), instructions=(one, two))

    assert judged(told).receipts[0].parts == (Part(3, (key("a"),)), Part(2, (key("b"),)))
    assert judged(short).receipts[0].parts == ()


def test_a_signer_of_a_multisig_is_no_reference() -> None:
    document = paid(
        5, keys=(key("a"),), signers=(PAYER, RELAYER), instructions=(transfer(5, RELAYER, key("a")),)
    )

    assert judged(document).receipts[0].parts == (Part(5, (key("a"),)),)


def test_a_batch_that_the_node_did_not_parse_is_read_from_its_bytes() -> None:
    def one(amount: int) -> bytes:
        return bytes([4, 9, 3]) + amount.to_bytes(8, "little")

    accounts = [PAYER_USD, USD_ACCOUNT, PAYER, key("a"), PAYER_USD, USD_ACCOUNT, PAYER, key("b")]
    batch = {"programId": TOKEN, "accounts": accounts, "data": encode(b"\xff" + one(3) + one(2))}
    document = paid(5, keys=(key("a"), key("b")), instructions=(batch,))

    assert judged(document).receipts[0].parts == (Part(3, (key("a"),)), Part(2, (key("b"),)))


def test_sol_transfers_tell_their_references_where_accounts_are_shown() -> None:
    data = encode((2).to_bytes(4, "little") + (40).to_bytes(8, "little"))
    sent = {"programId": SYSTEM, "accounts": [PAYER, WALLET, key("a")], "data": data}
    document = answer(lamports={WALLET: (0, 40)}, keys=(key("a"),), instructions=(sent,))

    assert judged(document).receipts[0].parts == (Part(40, (key("a"),)),)
