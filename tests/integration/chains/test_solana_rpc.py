"""Our client against the development chain: what each answer and each failure of a node comes to."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from solders.keypair import Keypair

from tempa.adapters.chains.solana import SolanaRpc
from tempa.settlement.ports import AccountState, Found, NotFound, Sighting, Trouble
from tempa.settlement.reasons import REASONS, Kind
from tempa.settlement.treasury import admitted, balance
from tempa.settlement.verify import verify
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.canned import Canned

if TYPE_CHECKING:
    from tempa.settlement.model import Treasury
    from tempa.testing.devchain.chain import DevChain
    from tests.integration.chains.conftest import Call, Connect

FINAL_SLOTS = 33
SECRET_PATH = "/v1/0123456789-key"


def pay(chain: DevChain, lamports: int = 5_000, version: int | str = "legacy") -> str:
    """A payment of SOL that has landed and is not final."""
    transfer = make.pay_sol(chain.payer.key, chain.treasury.key, lamports)
    signature = chain.payer.send(transfer, version=version)
    chain.cluster.tick()
    return signature


async def test_a_payment_is_found_when_it_is_final_and_not_before(
    chain: DevChain, connect: Connect, treasury: Treasury
) -> None:
    """Of each version, in each encoding."""
    signatures = [pay(chain, 5_000, version) for version in ("legacy", 0, 1)]

    for signature in signatures:
        assert await connect().get_transaction(signature) == NotFound("node 0")
    chain.cluster.tick(FINAL_SLOTS)

    for encoding, signature in product(("jsonParsed", "json", "base64"), signatures):
        found = await connect(encoding=encoding).get_transaction(signature)
        assert isinstance(found, Found)
        assert [one.amount for one in verify(found.answer, treasury, signature).receipts] == [5_000]


async def test_a_node_that_is_behind_does_not_find_it_yet(chain: DevChain, connect: Connect) -> None:
    signature = pay(chain)
    chain.cluster.tick(FINAL_SLOTS)
    chain.nodes[1].lag_slots = 40

    assert isinstance(await connect(0).get_transaction(signature), Found)
    assert await connect(1).get_transaction(signature) == NotFound("node 1")


FAULTS = [
    (Fault("http", status=429, retry_after=7), "node_rate_limited", 7.0),
    (Fault("http", status=429), "node_rate_limited", 1.0),
    (Fault("http", status=502), "node_unavailable", None),
    (Fault("http", status=503, retry_after=3), "node_unavailable", 3.0),
    (Fault("http", status=401), "call_refused", None),
    (Fault("truncated"), "answer_unreadable", None),
    (Fault("garbage"), "answer_unreadable", None),
    (Fault("error", code=-32005), "node_unavailable", None),
    (Fault("error", code=-32004), "node_unavailable", None),
    (Fault("error", code=-32014), "node_unavailable", None),
    (Fault("error", code=-32016), "node_behind", None),
    (Fault("error", code=-32015), "version_unsupported", None),
    (Fault("error", code=-32602), "call_refused", None),
    (Fault("error", code=-32601), "call_refused", None),
]


async def test_what_a_node_gets_wrong_has_its_reason(chain: DevChain, connect: Connect) -> None:
    signature = pay(chain)
    chain.cluster.tick(FINAL_SLOTS)
    for fault, reason, pause in FAULTS:
        chain.nodes[0].faults["getTransaction"] = [fault]

        trouble = await connect().get_transaction(signature)

        assert isinstance(trouble, Trouble), fault
        told = trouble.reason, trouble.retry_after_seconds, trouble.node
        assert told == (reason, pause, "node 0"), fault
        assert REASONS[reason].kind in {Kind.TRANSIENT, Kind.ALARM}
    assert REASONS["version_unsupported"].kind is Kind.ALARM  # never: no payment


async def test_a_node_that_never_answers_times_out(chain: DevChain, connect: Connect) -> None:
    chain.nodes[0].faults["getSlot"] = [Fault("timeout")]

    trouble = await connect(timeout_seconds=0.2).slot()

    assert isinstance(trouble, Trouble)
    assert trouble.reason == "node_timeout"


async def test_nobody_listening_is_unreachable(call: Call) -> None:
    trouble = await call("http://127.0.0.1:1").slot()

    assert isinstance(trouble, Trouble)
    assert trouble.reason == "node_unreachable"


async def test_after_429_the_node_is_left_alone_for_as_long_as_it_says(
    chain: DevChain, connect: Connect
) -> None:
    chain.nodes[0].faults["getSlot"] = [Fault("http", status=429, retry_after=60)]
    node = connect(patience_seconds=1.0)
    await node.slot()
    asked = dict(chain.nodes[0].calls)

    trouble = await node.slot()

    assert isinstance(trouble, Trouble)
    assert trouble.reason == "node_rate_limited"
    assert trouble.retry_after_seconds == pytest.approx(60, abs=5)
    assert chain.nodes[0].calls == asked


async def test_calls_beyond_the_rate_wait_for_their_turn(connect: Connect) -> None:
    waited: list[float] = []

    async def note(seconds: float) -> None:
        waited.append(seconds)

    node = connect(rate_per_second=0.5, burst=2, patience_seconds=10.0, sleep=note)
    answers = [await node.slot() for _ in range(4)]

    assert all(isinstance(slot, int) for slot in answers)
    assert waited == pytest.approx([2, 4], abs=1)


async def test_a_history_is_paged_without_gaps_or_doubles(chain: DevChain, connect: Connect) -> None:
    sent = [pay(chain, 1_000 + place) for place in range(7)]
    chain.cluster.tick(FINAL_SLOTS)
    for number in (0, 1):
        node = connect(number)
        pages: list[Sighting] = []
        before = None
        while True:
            page = await node.signatures_for_address(str(chain.treasury.key), before=before, limit=3)
            assert isinstance(page, list)
            pages += page
            if not page:
                break
            before = page[-1].signature
        found = [sighting.signature for sighting in pages if sighting.signature in sent]

        assert sorted(found) == sorted(sent)
        assert len(pages) == len({sighting.signature for sighting in pages})
        slots = [sighting.slot for sighting in pages]
        assert slots == sorted(slots, reverse=True)


async def test_a_history_tells_what_failed(chain: DevChain, connect: Connect) -> None:
    transfer = make.pay_sol(chain.payer.key, chain.treasury.key, 10**18)
    failed = chain.payer.send(transfer, skip_preflight=True)
    chain.cluster.tick(FINAL_SLOTS)

    page = await connect().signatures_for_address(str(chain.treasury.key))

    assert isinstance(page, list)
    assert {sighting.signature: sighting.failed for sighting in page}[failed]


async def test_statuses_come_in_the_order_asked_in_chunks_a_node_takes(
    chain: DevChain, connect: Connect
) -> None:
    final = pay(chain)
    chain.cluster.tick(FINAL_SLOTS)
    fresh = pay(chain)
    unknown = [str(Keypair.from_seed(bytes([1]) * 32).sign_message(bytes([place]))) for place in range(250)]
    asked = [final, *unknown, fresh, *unknown, final]

    statuses = await connect().statuses(asked)

    assert isinstance(statuses, list)
    assert len(statuses) == len(asked)
    told = {asked[place]: status.commitment for place, status in enumerate(statuses) if status is not None}
    assert told[final] == "finalized"
    assert told[fresh] in {"processed", "confirmed"}
    assert set(told) == {final, fresh}
    assert chain.nodes[0].calls["getSignatureStatuses"] == 2


async def test_heights_slots_and_the_genesis_hash(chain: DevChain, connect: Connect) -> None:
    node = connect()
    slot, height = await node.slot(), await node.block_height()
    chain.cluster.tick(3, skip=5)

    assert await node.genesis_hash() == chain.cluster.genesis_hash
    assert isinstance(slot, int)
    assert isinstance(height, int)
    chain.cluster.tick(FINAL_SLOTS)
    later = await node.slot(), await node.block_height()
    assert later[0] - slot > later[1] - height > 0  # type: ignore[operator]  # skipped slots have no block


async def test_the_treasury_is_admitted_by_what_the_chain_shows(
    chain: DevChain, connect: Connect, treasury: Treasury
) -> None:
    pay(chain, 7_000)
    chain.cluster.tick(FINAL_SLOTS)
    node, states = connect(), {}
    for row in treasury.accounts:
        for address in {row.address, row.asset} - {"SOL"}:
            state = await node.account(address)
            assert isinstance(state, AccountState)
            states[address] = state.value

    assert [row.refusal for row in admitted(treasury, states).accounts] == [None, None]
    wallet = treasury.accounts[0]
    assert balance(wallet, states[wallet.address]) == 100 * 10**9 + 7_000


async def test_an_account_that_does_not_exist_is_none_as_of_a_slot(chain: DevChain, connect: Connect) -> None:
    state = await connect().account(str(Keypair.from_seed(bytes([9]) * 32).pubkey()))

    assert isinstance(state, AccountState)
    assert state.value is None
    assert state.slot > 0


async def test_a_node_that_has_not_reached_a_slot_says_so(chain: DevChain, connect: Connect) -> None:
    trouble = await connect().account(str(chain.treasury.key), min_context_slot=10**9)

    assert isinstance(trouble, Trouble)
    assert trouble.reason == "node_behind"


BROKEN: list[tuple[bytes, str]] = [
    (b"", "answer_unreadable"),
    (b"[]", "answer_unreadable"),
    (b"null", "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1}', "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":77,"result":{}}', "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"result":7}', "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"result":{"slot":NaN}}', "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000, "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"result":' + b"9" * 5_000 + b"}", "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"result":"\xff"}', "answer_unreadable"),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":["x"],"message":{}}}', "call_refused"),
    (b'{"jsonrpc":"2.0","id":1,"error":{}}', "call_refused"),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":429}}', "node_rate_limited"),
]


@pytest.mark.parametrize(("body", "reason"), BROKEN, ids=range(len(BROKEN)))
async def test_no_answer_of_a_node_raises(call: Call, body: bytes, reason: str) -> None:
    signature = str(Keypair.from_seed(bytes([2]) * 32).sign_message(b""))
    async with Canned(body) as server:
        trouble = await call(server.url).get_transaction(signature)

    assert isinstance(trouble, Trouble)
    assert trouble.reason == reason


@pytest.mark.parametrize(
    "value",
    ["7", -1, 2**64, True, None, [], 1.5],
    ids=repr,
)
async def test_numbers_that_are_none_are_unreadable(call: Call, value: Any) -> None:
    async with Canned(json.dumps({"jsonrpc": "2.0", "id": 1, "result": value}).encode()) as server:
        trouble = await call(server.url).slot()

    assert isinstance(trouble, Trouble)
    assert trouble.reason == "answer_unreadable"


async def test_a_page_with_one_bad_row_is_no_page(call: Call) -> None:
    good = {"signature": str(Keypair.from_seed(bytes([3]) * 32).sign_message(b"")), "slot": 1, "err": None}
    for bad in (
        {**good, "signature": "x"},
        {**good, "slot": "1"},
        {"signature": good["signature"], "slot": 1},
    ):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": [good, bad]}).encode()
        async with Canned(body) as server:
            page = await call(server.url).signatures_for_address("x")
        assert isinstance(page, Trouble)


async def test_the_key_in_a_url_is_never_told(call: Call) -> None:
    async with Canned() as server:
        server.path = SECRET_PATH
        error = {"code": -32601, "message": f"no such path: {server.url}, {SECRET_PATH}"}
        server.body = json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode()
        trouble = await call(server.url).slot()
        host = server.url.removeprefix("http://").removesuffix(SECRET_PATH)

    assert isinstance(trouble, Trouble)
    assert SECRET_PATH not in repr(trouble)
    assert trouble.node == host


@pytest.mark.parametrize(
    ("told", "seconds"),
    [("12", 12.0), ("100000", 900.0), ("soon", 1.0), ("-5", 1.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
async def test_retry_after_is_read_in_either_form(call: Call, told: str, seconds: float) -> None:
    async with Canned(b"", 429, f"Retry-After: {told}") as server:
        trouble = await call(server.url).slot()

    assert isinstance(trouble, Trouble)
    assert trouble.retry_after_seconds == seconds


async def test_the_call_says_what_it_must() -> None:
    """Version 1 always; finality always; never `until`."""
    sent: list[dict[str, Any]] = []

    class Noting:
        async def send(self, request: Any) -> Any:
            sent.append(json.loads(request.body))
            raise NotImplementedError

        async def close(self) -> None: ...

    node = SolanaRpc("http://127.0.0.1", Noting())
    for call in (
        node.get_transaction("s"),
        node.signatures_for_address("a", before="b", limit=5000, min_context_slot=9),
        node.slot(),
        node.account("a"),
    ):
        with pytest.raises(NotImplementedError):
            await call

    finalized = {"commitment": "finalized"}
    assert [(one["method"], one["params"]) for one in sent] == [
        (
            "getTransaction",
            ["s", {"encoding": "jsonParsed", "maxSupportedTransactionVersion": 1, **finalized}],
        ),
        ("getSignaturesForAddress", ["a", {"limit": 1000, "before": "b", "minContextSlot": 9, **finalized}]),
        ("getSlot", [finalized]),
        ("getAccountInfo", ["a", {"encoding": "jsonParsed", **finalized}]),
    ]
