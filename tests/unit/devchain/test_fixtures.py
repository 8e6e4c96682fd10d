"""The fixtures are what a real node could have answered, and come to what their players say."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from solders.message import Message, MessageV0
from solders.rpc.responses import GetTransactionResp
from solders.transaction import VersionedTransaction

from tempa.testing.devchain.fixtures import cases
from tempa.testing.devchain.fixtures.__main__ import main
from tempa.testing.devchain.fixtures.case import CASES
from tempa.testing.devchain.fixtures.world import World

if TYPE_CHECKING:
    from pathlib import Path

ALL = {case["name"]: case for case in cases()}
# Research 8.4, but for what is a post of a provider and no transaction.
WANTED = [
    "sol-legacy",
    "sol-v0",
    "sol-v1",
    "spl-transfer",
    "spl-checked-ref-memo",
    "memo-after",
    "memo-twice",
    "relayer",
    "p-token-batch",
    "two-transfers",
    "two-invoices",
    "multi-asset",
    "alt-only-treasury",
    "cpi-recover-nested",
    "create-ATA-and-pay",
    "t22-fee",
    "t22-fee-explicit",
    "t22-scaled-ui",
    "t22-hook",
    "wsol-in",
    "wsol-close",
    "close-rent",
    "mintTo",
    "net-zero",
    "in-out",
    "self-transfer",
    "treasury-fee-payer",
    "treasury-outflow",
    "spoof-mint",
    "aux-account",
    "wrong-owner",
    "dust",
    "u64-max",
    "failed-ix0",
    "failed-ix1",
    "blockTime-null",
    "meta-null",
    "reference-griefing",
    "late",
    "under",
    "over",
    "durable-nonce",
]


def by_solders(case: dict[str, Any], encoding: str) -> Any:
    """Read by an independent, strict reader."""
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": case["encodings"][encoding]})
    read = GetTransactionResp.from_json(text)
    assert isinstance(read, GetTransactionResp), read
    assert read.value is not None
    return read.value


def gains(case: dict[str, Any]) -> dict[tuple[str, str], int]:
    """What the listed accounts gained, read off the answer by the plainest means, failures aside."""
    meta, message = case["transaction"]["meta"], case["transaction"]["transaction"]["message"]
    keys = [key["pubkey"] for key in message["accountKeys"]]
    moved: dict[tuple[str, str], int] = {}
    for sign, side in ((1, "postTokenBalances"), (-1, "preTokenBalances")):
        for row in meta[side]:
            place = row["mint"], keys[row["accountIndex"]]
            moved[place] = moved.get(place, 0) + sign * int(row["uiTokenAmount"]["amount"])
    for index, key in enumerate(keys):
        fee = meta["fee"] if index == 0 else 0
        moved["SOL", key] = meta["postBalances"][index] - meta["preBalances"][index] + fee
    listed = {(row["asset"], row["address"]) for row in case["treasury"]["accounts"] if not row["refusal"]}
    return {place: amount for place, amount in moved.items() if place in listed and amount > 0}


def test_all_that_research_asks_for_is_there() -> None:
    assert sorted(ALL) == sorted(WANTED)


@pytest.mark.parametrize("name", sorted(set(WANTED) - {"meta-null"}))
def test_a_case_comes_to_what_its_player_says(name: str) -> None:
    case = ALL[name]
    told = {(row["asset"], row["account"]): row["amount"] for row in case["expected"]}

    assert gains(case) == told
    assert (case["transaction"]["meta"]["err"] is not None) == (case["refused"] == "transaction_failed")
    assert bool(told) != bool(case["refused"])


@pytest.mark.parametrize("encoding", ["json", "jsonParsed", "base64", "base58"])
@pytest.mark.parametrize("name", WANTED)
def test_a_strict_reader_takes_every_answer(name: str, encoding: str) -> None:
    case = ALL[name]
    read = by_solders(case, encoding)

    assert read.slot == case["transaction"]["slot"]
    meta = case["transaction"]["meta"]
    if meta is not None:
        assert read.transaction.meta.post_balances == meta["postBalances"]
        assert [row.account_index for row in read.transaction.meta.post_token_balances] == [
            row["accountIndex"] for row in meta["postTokenBalances"]
        ]


@pytest.mark.parametrize("name", WANTED)
def test_keys_and_rights_are_those_of_the_bytes(name: str) -> None:
    """The library's own reading of the raw transaction is the judge."""
    case = ALL[name]
    message = VersionedTransaction.from_bytes(base64.b64decode(case["raw"])).message
    told = case["transaction"]["transaction"]["message"]["accountKeys"]
    static = [key for key in told if key["source"] == "transaction"]

    assert [key["pubkey"] for key in static] == [str(key) for key in message.account_keys]
    assert [key["signer"] for key in static] == [message.is_signer(at) for at in range(len(static))]
    # A legacy message cannot say what is writable; the same header and keys as version 0 can.
    parts = message.header, message.account_keys, message.recent_blockhash, message.instructions
    judge = MessageV0(*parts, []) if isinstance(message, Message) else message
    assert [key["writable"] for key in static] == [judge.is_maybe_writable(at) for at in range(len(static))]


def test_the_treasury_is_named_by_a_lookup_table_alone() -> None:
    case = ALL["alt-only-treasury"]
    account = case["expected"][0]["account"]
    raw = case["encodings"]["json"]

    assert account not in raw["transaction"]["message"]["accountKeys"]
    assert account in raw["meta"]["loadedAddresses"]["writable"]
    sources = {
        key["pubkey"]: key["source"] for key in case["transaction"]["transaction"]["message"]["accountKeys"]
    }
    assert sources[account] == "lookupTable"


def test_a_batch_tells_nothing_of_its_transfers() -> None:
    case = ALL["p-token-batch"]
    (instruction,) = case["transaction"]["transaction"]["message"]["instructions"]

    assert "parsed" not in instruction
    assert case["transaction"]["meta"]["innerInstructions"] == []
    assert not any("Transfer" in line for line in case["transaction"]["meta"]["logMessages"])


def test_a_nested_recovery_shows_its_inner_transfer() -> None:
    (group,) = ALL["cpi-recover-nested"]["transaction"]["meta"]["innerInstructions"]

    assert [one["parsed"]["type"] for one in group["instructions"]] == ["transferChecked", "closeAccount"]
    assert {one["stackHeight"] for one in group["instructions"]} == {2}


def test_what_people_are_shown_is_exact_where_a_float_is_not() -> None:
    rows = ALL["u64-max"]["transaction"]["meta"]["postTokenBalances"]
    amounts = [row["uiTokenAmount"] for row in rows]

    assert str(2**64 - 1) in {amount["amount"] for amount in amounts}
    for case in ALL.values():
        for row in (case["transaction"]["meta"] or {"postTokenBalances": []})["postTokenBalances"]:
            amount = row["uiTokenAmount"]
            exact = Decimal(amount["amount"]) / 10 ** amount["decimals"]
            assert Decimal(amount["uiAmountString"]) == exact
            assert amount["uiAmount"] == (float(exact) or None)


def test_versions_are_told() -> None:
    versions = {name: ALL[name]["transaction"]["version"] for name in ("sol-legacy", "sol-v0", "sol-v1")}

    assert versions == {"sol-legacy": "legacy", "sol-v0": 0, "sol-v1": 1}
    assert base64.b64decode(ALL["sol-v1"]["raw"])[0] == 129


def test_they_are_the_same_in_every_run(tmp_path: Path) -> None:
    main(tmp_path)
    again = World()
    play = CASES["sol-legacy"](again)

    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(WANTED)
    written = {path.stem: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert written == ALL
    assert play.signature == ALL["sol-legacy"]["signature"]
