"""Each method answers as a node does: what it shows at which commitment, what it refuses, with which code."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from solders.rpc import responses

from tempa.core.base58 import encode
from tempa.testing.devchain.blocks import Mode
from tempa.testing.devchain.cluster import Cluster
from tempa.testing.devchain.devnet import PAYER_FUNDS, Devnet
from tempa.testing.devchain.faults import Fault, UnknownFault
from tempa.testing.devchain.instructions import memo, pay_sol
from tempa.testing.devchain.rpc.dispatch import METHODS, reply_to
from tempa.testing.devchain.wallet import keypair

UNKNOWN = encode(bytes(range(1, 65)))
NOBODY = str(keypair("nobody").pubkey())


class World:
    """A net of three nodes and short words for asking them."""

    def __init__(self, mode: Mode = Mode.TOWER) -> None:
        self.net = Devnet(Cluster(mode=mode), nodes=3)
        self.cluster = self.net.cluster
        self.treasury = str(self.net.treasury.key)

    def pay(self, lamports: int = 5, version: int | str = "legacy") -> str:
        step = pay_sol(self.net.payer.key, self.net.treasury.key, lamports)
        return self.net.payer.send(memo(f"tempa:{lamports}"), step, version=version)

    def text(self, method: str, *params: Any, node: int = 0) -> str:
        asked = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)}
        return reply_to(self.net.nodes[node], json.dumps(asked).encode()).body.decode()

    def result(self, method: str, *params: Any, node: int = 0) -> Any:
        answer = json.loads(self.text(method, *params, node=node))
        assert answer["id"] == 7
        return answer["result"]

    def error(self, method: str, *params: Any, node: int = 0) -> dict[str, Any]:
        answer = json.loads(self.text(method, *params, node=node))
        told: dict[str, Any] = answer["error"]
        return told


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=list(Mode))
def either(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_a_transaction_is_null_until_its_commitment(world: World) -> None:
    signature = world.pay()
    seen = []
    for _ in range(34):
        shown = [
            world.result("getTransaction", signature, {"commitment": commitment}) is not None
            for commitment in ("confirmed", "finalized")
        ]
        seen.append(tuple(shown))
        world.cluster.tick()

    assert seen == [(False, False)] + [(True, False)] * 31 + [(True, True)] * 2
    assert world.result("getTransaction", signature) is not None  # finalized is the default


@pytest.mark.parametrize("method", ["getTransaction", "getSignaturesForAddress", "getBlock"])
def test_processed_is_not_enough_for_history(world: World, method: str) -> None:
    first = {"getTransaction": UNKNOWN, "getSignaturesForAddress": world.treasury, "getBlock": 1000}[method]
    error = world.error(method, first, {"commitment": "processed"})

    assert error["code"] == -32602
    assert error["message"] == "Method does not support commitment below `confirmed`"


@pytest.mark.parametrize("version", [0, 1])
def test_a_version_that_was_not_allowed_is_named(either: World, version: int) -> None:
    signature = either.pay(version=version)
    slot = either.cluster.tip.slot
    either.cluster.tick(33)
    asked: list[dict[str, int]] = [{}] + [{"maxSupportedTransactionVersion": n} for n in range(version)]
    for config in asked:
        for method, first in (("getTransaction", signature), ("getBlock", slot)):
            error = either.error(method, first, config)
            assert error["code"] == -32015
            assert f"Transaction version ({version}) is not supported" in error["message"]
            assert f'"maxSupportedTransactionVersion": {version}' in error["message"]
    config = {"maxSupportedTransactionVersion": version}

    assert either.result("getTransaction", signature, config)["version"] == version


def test_who_does_not_speak_of_versions_is_told_none(world: World) -> None:
    signature = world.pay()
    world.cluster.tick(33)

    assert "version" not in world.result("getTransaction", signature)
    config = {"maxSupportedTransactionVersion": 0}
    assert world.result("getTransaction", signature, config)["version"] == "legacy"


def test_statuses_count_confirmations_until_there_is_nothing_to_count(world: World) -> None:
    signature = world.pay()
    rows = []
    for _ in range(33):
        rows.append(world.result("getSignatureStatuses", [signature, UNKNOWN])["value"])
        world.cluster.tick()
    told = [(row["confirmationStatus"], row["confirmations"]) for row, _ in rows]

    assert told[0] == ("processed", 0)
    assert told[1:32] == [("confirmed", count) for count in range(1, 32)]
    assert told[32] == ("finalized", None)
    assert {missing for _, missing in rows} == {None}


def test_an_old_status_has_to_be_searched_for(world: World) -> None:
    signature = world.pay()
    world.cluster.tick(400)
    search = {"searchTransactionHistory": True}

    assert world.result("getSignatureStatuses", [signature])["value"] == [None]
    assert world.result("getSignatureStatuses", [signature], search)["value"][0]["confirmations"] is None


def test_statuses_come_256_at_a_time(world: World) -> None:
    assert world.error("getSignatureStatuses", [UNKNOWN] * 257)["code"] == -32602
    assert len(world.result("getSignatureStatuses", [UNKNOWN] * 256)["value"]) == 256


def pages(world: World, node: int, limit: int) -> list[str]:
    found: list[str] = []
    while True:
        config = {"limit": limit, **({"before": found[-1]} if found else {})}
        page = [
            row["signature"]
            for row in world.result("getSignaturesForAddress", world.treasury, config, node=node)
        ]
        if not page:
            return found
        found += page


def test_history_is_newest_first_and_its_order_inside_a_slot_is_each_nodes_own(world: World) -> None:
    sent: list[set[str]] = []
    for slot in range(4):
        sent.append({world.pay(10 * slot + n) for n in range(6)})
        world.cluster.tick()
    world.cluster.tick(33)
    orders = [pages(world, node, 5)[:24] for node in range(3)]
    for order in orders:
        assert [set(order[at : at + 6]) for at in range(0, 24, 6)] == sent[::-1]

    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert orders[1] == pages(world, 1, 1000)[:24]  # its own order stays the same


def test_an_unknown_before_ends_the_search_and_an_unknown_until_bounds_nothing(world: World) -> None:
    signatures = [world.pay(n) for n in range(3)]
    world.cluster.tick(33)
    newest = world.result("getSignaturesForAddress", world.treasury, {"limit": 2})

    assert [row["signature"] for row in newest] == signatures[:0:-1]
    assert world.result("getSignaturesForAddress", world.treasury, {"before": UNKNOWN}) == []
    bounded = world.result("getSignaturesForAddress", world.treasury, {"limit": 2, "until": UNKNOWN})
    assert bounded == newest
    until = world.result("getSignaturesForAddress", world.treasury, {"until": signatures[0]})
    assert [row["signature"] for row in until] == signatures[:0:-1]


def test_a_row_of_history_tells_memo_and_error(world: World) -> None:
    good = world.pay(5)
    payer = world.net.payer
    bad = payer.send(pay_sol(payer.key, world.net.treasury.key, 10**18), skip_preflight=True)
    world.cluster.tick(33)
    rows = {row["signature"]: row for row in world.result("getSignaturesForAddress", world.treasury)}

    assert rows[good]["memo"] == "[7] tempa:5"
    assert rows[good]["err"] is None
    assert rows[bad]["memo"] is None
    assert rows[bad]["err"] == {"InstructionError": [0, {"Custom": 1}]}
    assert rows[good]["confirmationStatus"] == "finalized"
    assert [rows[good]["transactionIndex"], rows[bad]["transactionIndex"]] == [0, 1]


@pytest.mark.parametrize("limit", [0, 1001, -1, "10", True])
def test_a_page_has_a_size(world: World, limit: Any) -> None:
    assert world.error("getSignaturesForAddress", world.treasury, {"limit": limit})["code"] == -32602


def test_a_node_that_lags_knows_less_and_says_so(world: World) -> None:
    signature = world.pay()
    world.cluster.tick(40)
    world.net.nodes[1].lag_slots = 20
    slots = [world.result("getSlot", node=node) for node in (0, 1)]
    config = {"commitment": "finalized", "minContextSlot": slots[0]}
    error = world.error("getSlot", config, node=1)

    assert slots[0] - slots[1] == 20
    assert [world.result("getTransaction", signature, node=node) is None for node in (0, 1)] == [False, True]
    assert (error["code"], error["data"]) == (-32016, {"contextSlot": slots[1]})
    assert world.result("getSlot", config) == slots[0]
    world.net.nodes[1].lag_slots = 200
    assert world.error("getHealth", node=1)["code"] == -32005


def test_a_balance_is_that_of_its_commitment(world: World) -> None:
    before = world.result("getBalance", world.treasury)["value"]
    world.pay(7)
    seen = {
        commitment: world.result("getBalance", world.treasury, {"commitment": commitment})["value"] - before
        for commitment in ("processed", "confirmed", "finalized")
    }
    world.cluster.tick(32)

    assert seen == {"processed": 7, "confirmed": 0, "finalized": 0}
    assert world.result("getBalance", world.treasury)["value"] - before == 7


def test_token_accounts_are_found_by_owner(world: World) -> None:
    config = {"encoding": "jsonParsed"}
    owner, mint = str(world.net.payer.key), str(world.net.mint)
    by_mint = world.result("getTokenAccountsByOwner", owner, {"mint": mint}, config)["value"]
    program = by_mint[0]["account"]["owner"]
    by_program = world.result("getTokenAccountsByOwner", owner, {"programId": program}, config)["value"]
    parsed = by_mint[0]["account"]["data"]["parsed"]

    assert by_mint == by_program
    assert by_mint[0]["pubkey"] == str(world.net.payer.account(world.net.mint))
    assert (parsed["info"]["owner"], parsed["info"]["mint"]) == (owner, mint)
    assert parsed["info"]["tokenAmount"]["amount"] == str(PAYER_FUNDS)
    assert world.result("getTokenAccountsByOwner", NOBODY, {"mint": mint}, config)["value"] == []


def test_blocks_that_were_skipped_or_are_not_there_have_their_codes(world: World) -> None:
    last = world.cluster.tip.slot
    world.cluster.tick(40, skip=3)
    tip = world.cluster.tip.slot

    assert world.error("getBlock", last + 1)["code"] == -32007
    assert world.error("getBlock", tip)["code"] == -32004
    assert world.error("getBlock", 5)["code"] == -32001
    assert world.result("getBlock", last + 4)["parentSlot"] == last
    assert world.result("getBlocks", last - 1, last + 5) == [last - 1, last, last + 4, last + 5]
    assert world.result("getBlocksWithLimit", last, 2) == [last, last + 4]


def test_a_blockhash_is_valid_as_long_as_it_was_said(world: World) -> None:
    told = world.result("getLatestBlockhash", {"commitment": "processed"})["value"]
    ask = ("isBlockhashValid", told["blockhash"], {"commitment": "processed"})
    while world.result("getBlockHeight", {"commitment": "processed"}) < told["lastValidBlockHeight"]:
        world.cluster.tick(10)

    assert world.result(*ask)["value"] is True
    world.cluster.tick()
    assert world.result(*ask)["value"] is False


def test_consensus_shows_in_its_certificate(world: World) -> None:
    assert world.result("getAgGenesisCert") is None
    world.cluster.set_mode(Mode.ALPENGLOW)

    assert world.result("getAgGenesisCert")["block"]["slot"] == world.cluster.tip.slot


def test_sending_answers_with_the_signature_or_says_why_not(world: World) -> None:
    payer = world.net.payer
    raw = payer.signed(pay_sol(payer.key, world.net.treasury.key, 5))
    text, config = base64.b64encode(raw).decode(), {"encoding": "base64"}
    signature = world.result("sendTransaction", text, config)
    again = world.error("sendTransaction", text, config)

    assert world.cluster.find(signature) is not None
    assert (again["code"], again["data"]["err"]) == (-32002, "AlreadyProcessed")
    assert world.result("sendTransaction", text, {**config, "skipPreflight": True}) == signature
    assert world.error("sendTransaction", "no base64!", config)["code"] == -32602
    assert world.error("sendTransaction", text)["code"] == -32602  # base58 is the default


def test_strict_readers_take_what_methods_answer(either: World) -> None:
    signature = either.pay()
    slot = either.cluster.tip.slot
    either.cluster.tick(33)
    parsed, treasury, mint = {"encoding": "jsonParsed"}, either.treasury, str(either.net.mint)
    account = str(either.net.treasury.account(either.net.mint))
    asked: list[tuple[type[Any], str, tuple[Any, ...]]] = [
        (responses.GetSlotResp, "getSlot", ()),
        (responses.GetBlockHeightResp, "getBlockHeight", ()),
        (responses.GetVersionResp, "getVersion", ()),
        (responses.GetGenesisHashResp, "getGenesisHash", ()),
        (responses.GetHealthResp, "getHealth", ()),
        (responses.GetEpochInfoResp, "getEpochInfo", ()),
        (responses.GetLatestBlockhashResp, "getLatestBlockhash", ()),
        (responses.GetBlockResp, "getBlock", (slot, {"encoding": "jsonParsed"})),
        (responses.GetBlockResp, "getBlock", (slot, {"transactionDetails": "accounts"})),
        (responses.GetBlockResp, "getBlock", (slot, {"transactionDetails": "signatures"})),
        (responses.GetBlocksResp, "getBlocks", (slot, slot + 3)),
        (responses.GetBlockTimeResp, "getBlockTime", (slot,)),
        (responses.GetTransactionResp, "getTransaction", (signature, parsed)),
        (responses.GetSignatureStatusesResp, "getSignatureStatuses", ([signature, UNKNOWN],)),
        (responses.GetSignaturesForAddressResp, "getSignaturesForAddress", (treasury,)),
        (responses.GetBalanceResp, "getBalance", (treasury,)),
        (responses.GetAccountInfoResp, "getAccountInfo", (treasury, {"encoding": "base64"})),
        (responses.GetAccountInfoJsonParsedResp, "getAccountInfo", (mint, parsed)),
        (responses.GetMultipleAccountsResp, "getMultipleAccounts", ([treasury, NOBODY],)),
        (
            responses.GetTokenAccountsByOwnerJsonParsedResp,
            "getTokenAccountsByOwner",
            (treasury, {"mint": mint}, parsed),
        ),
        (responses.GetTokenAccountBalanceResp, "getTokenAccountBalance", (account,)),
        (responses.GetTokenSupplyResp, "getTokenSupply", (mint,)),
        (responses.GetMinimumBalanceForRentExemptionResp, "getMinimumBalanceForRentExemption", (165,)),
    ]
    for reader, method, params in asked:
        read = reader.from_json(either.text(method, *params))
        assert isinstance(read, reader), f"{method}: {read}"


def test_garbage_has_an_answer(world: World) -> None:
    node = world.net.nodes[0]
    codes = {
        body: json.loads(reply_to(node, body).body)["error"]["code"]
        for body in (
            b"",
            b"{",
            b"7",
            b"{}",
            b'{"method": 7}',
            b'{"method": "no"}',
            b'{"method": "getSlot", "params": {}}',
        )
    }

    assert list(codes.values()) == [-32700, -32700, -32600, -32600, -32600, -32601, -32602]
    tried: tuple[list[Any], ...] = (
        [],
        [None],
        [{}],
        ["x", "y"],
        [[1]],
        [-1],
        [2**70, {"commitment": "max"}],
    )
    for method in METHODS:  # no argument is beyond a node
        for params in tried:
            asked = json.dumps({"id": 1, "method": method, "params": params}).encode()
            assert {"result", "error"} & json.loads(reply_to(node, asked).body).keys()


def test_a_batch_is_answered_in_its_order(world: World) -> None:
    asked = [{"id": number, "method": method} for number, method in enumerate(("getSlot", "no", "getHealth"))]
    answers = json.loads(reply_to(world.net.nodes[0], json.dumps(asked).encode()).body)

    assert [answer["id"] for answer in answers] == [0, 1, 2]
    assert answers[1]["error"]["code"] == -32601
    assert answers[2]["result"] == "ok"


def test_faults_wait_for_their_method_and_are_used_up(world: World) -> None:
    faults = world.net.nodes[0].faults
    faults["getSlot"] = [Fault("null"), Fault("error", code=-32005, times=2)]

    assert world.result("getHealth") == "ok"
    assert world.result("getSlot") is None
    assert [world.error("getSlot")["code"] for _ in range(2)] == [-32005, -32005]
    assert world.result("getSlot") == world.result("getSlot", node=1)


def test_a_node_lies_about_amounts_and_errors_and_the_chain_stays_true(world: World) -> None:
    good = world.pay(5)
    world.cluster.tick(33)
    honest = world.result("getTransaction", good)
    world.net.nodes[1].faults["*"] = [Fault("amount", amount=1000)]
    world.net.nodes[2].faults["*"] = [Fault("wrong_err", times=None)]
    higher, failed = (world.result("getTransaction", good, node=node) for node in (1, 2))
    statuses = world.result("getSignatureStatuses", [good], node=2)["value"]
    rows = world.result("getSignaturesForAddress", world.treasury, node=2)

    assert [
        b - a for a, b in zip(honest["meta"]["postBalances"], higher["meta"]["postBalances"], strict=True)
    ] == [1000] * len(honest["meta"]["postBalances"])
    assert failed["meta"]["err"] == failed["meta"]["status"]["Err"] == statuses[0]["err"]
    assert failed["meta"]["err"] is not None
    assert {row["signature"]: row["err"] for row in rows}[good] is not None
    assert world.result("getTransaction", good) == honest == world.result("getTransaction", good, node=1)


def test_a_refusal_of_the_transport_asks_nothing_and_a_lost_answer_does(world: World) -> None:
    payer = world.net.payer
    raw = base64.b64encode(payer.signed(pay_sol(payer.key, world.net.treasury.key, 5))).decode()
    asked = json.dumps(
        {"id": 1, "method": "sendTransaction", "params": [raw, {"encoding": "base64"}]}
    ).encode()
    node = world.net.nodes[0]
    node.faults["sendTransaction"] = [Fault("http", status=502), Fault("timeout")]

    refused = reply_to(node, asked)
    assert refused.fault is not None
    assert refused.fault.status == 502
    assert not world.cluster.tip.landed
    assert reply_to(node, asked).fault is not None
    assert len(world.cluster.tip.landed) == 1


@pytest.mark.parametrize("wrong", [{"kind": "explode"}, {"kind": "null", "times": 0}])
def test_a_fault_that_there_is_not_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UnknownFault):
        Fault(**wrong)
