"""The watch over the treasury's own accounts and mints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tempa.settlement.answer import UnreadableError
from tempa.settlement.reasons import REASONS
from tempa.settlement.treasury import account_fault, admitted, balance, mint_fault, mint_hash
from tests.unit.settlement.verify_samples import (
    EUR,
    EUR_ACCOUNT,
    EUR_ROW,
    PAYER,
    SOL_ROW,
    TOKEN,
    TOKEN_2022,
    TREASURY,
    USD,
    USD_ACCOUNT,
    USD_ROW,
    WALLET,
)


def mint(*extensions: str, program: str = TOKEN_2022, decimals: Any = 2, **more: Any) -> dict[str, Any]:
    info: dict[str, Any] = {"decimals": decimals, "supply": "9", "isInitialized": True, **more}
    if extensions:
        info["extensions"] = [{"extension": name, "state": {}} for name in extensions]
    return {"owner": program, "lamports": 1, "data": {"parsed": {"type": "mint", "info": info}}}


def account(program: str = TOKEN_2022, **more: Any) -> dict[str, Any]:
    info = {
        "mint": EUR,
        "owner": WALLET,
        "state": "initialized",
        "tokenAmount": {"amount": str(2**64 - 1), "decimals": 2, "uiAmount": 1.5},
        **more,
    }
    return {"owner": program, "lamports": 2_039_280, "data": {"parsed": {"type": "account", "info": info}}}


@pytest.mark.parametrize(
    ("extension", "reason"),
    [
        ("transferFeeConfig", "transfer_fee"),
        ("transferHook", "transfer_hook"),
        ("nonTransferable", "non_transferable"),
        ("defaultAccountState", "default_frozen"),
        ("confidentialTransferMint", "confidential_transfer"),
        ("confidentialTransferFeeConfig", "confidential_transfer"),
        ("pausableConfig", "pausable"),
        ("permanentDelegate", "permanent_delegate"),
        ("interestBearingConfig", "extension_not_allowed"),
        ("unparseableExtension", "extension_not_allowed"),
    ],
)
def test_an_extension_is_refused_until_its_row_names_it(extension: str, reason: str) -> None:
    shown = mint("metadataPointer", extension)

    assert mint_fault(EUR_ROW, shown) == reason
    assert reason in REASONS
    assert mint_fault(replace(EUR_ROW, extensions=frozenset({extension})), shown) is None


def test_a_plain_mint_is_accepted() -> None:
    assert mint_fault(USD_ROW, mint(program=TOKEN, decimals=6)) is None
    assert mint_fault(EUR_ROW, mint("tokenMetadata", "metadataPointer")) is None


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (None, "mint_unreadable"),
        ({}, "mint_unreadable"),
        ({"owner": TOKEN_2022, "data": ["AAAA", "base64"]}, "mint_unreadable"),
        (account(), "mint_unreadable"),
        (mint(program=TOKEN), "wrong_program"),
        (mint(decimals=6), "wrong_decimals"),
        (mint(decimals=None), "wrong_decimals"),
        (mint(extensions="none"), "mint_unreadable"),
        (mint(extensions=[7]), "mint_unreadable"),
        (mint(extensions=[{"extension": ["transferHook"]}]), "mint_unreadable"),
    ],
    ids=range(10),
)
def test_a_mint_that_is_not_as_pinned_is_refused(shown: Any, reason: str) -> None:
    assert mint_fault(EUR_ROW, shown) == reason


@pytest.mark.parametrize(
    ("shown", "reason"),
    [
        (None, "account_missing"),
        (account(), None),
        (account(closeAuthority=WALLET), None),
        (account(program=TOKEN), "account_changed"),
        (account(owner=PAYER), "account_changed"),
        (account(mint=USD), "account_changed"),
        (mint(), "account_changed"),
        (account(state="frozen"), "account_frozen"),
        (account(state=None), "account_frozen"),
        (account(delegate=PAYER, delegatedAmount={}), "account_delegated"),
        (account(closeAuthority=PAYER), "close_authority"),
    ],
    ids=range(11),
)
def test_the_watch_over_an_account(shown: Any, reason: str | None) -> None:
    assert account_fault(EUR_ROW, shown) == reason


def test_each_row_is_admitted_by_its_own_account_and_mint() -> None:
    states = {
        USD: mint(program=TOKEN, decimals=6),
        USD_ACCOUNT: account(program=TOKEN, mint=USD, state="frozen"),
        EUR: mint("transferHook"),
        EUR_ACCOUNT: account(),
    }

    seen = admitted(TREASURY, states)

    assert [row.refusal for row in seen.accounts] == [None, "account_frozen", "transfer_hook"]
    assert [row.refusal for row in admitted(seen, {**states, EUR: mint()}).accounts][2] is None


def test_a_balance_is_read_in_base_units() -> None:
    assert balance(EUR_ROW, account()) == 2**64 - 1
    assert balance(SOL_ROW, {"lamports": 2**64 - 1}) == 2**64 - 1
    assert balance(EUR_ROW, None) == 0
    for unreadable in ({}, account(tokenAmount={"amount": 5}), account(tokenAmount=None), account(mint=USD)):
        with pytest.raises(UnreadableError):
            balance(EUR_ROW, unreadable)


def test_the_hash_of_a_mint_sees_every_setting_but_the_supply() -> None:
    before = mint("transferFeeConfig")
    fee = mint("transferFeeConfig")
    fee["data"]["parsed"]["info"]["extensions"][0]["state"] = {"maximumFee": 2**64 - 1}

    assert mint_hash(mint("transferFeeConfig", supply="10")) == mint_hash(before)
    assert (
        len({mint_hash(before), mint_hash(fee), mint_hash(mint(freezeAuthority=PAYER)), mint_hash(mint())})
        == 4
    )
    with pytest.raises(UnreadableError):
        mint_hash(account())
