"""The chain over real sockets: faults of the transport, subscriptions, controls as others see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from solders.rpc import responses
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tempa.testing.devchain.blocks import Mode
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.instructions import pay, pay_sol

PATIENCE_SECONDS = 10.0


class Caller:
    """A client of one chain."""

    def __init__(self, chain: DevChain, session: httpx2.AsyncClient) -> None:
        self.chain, self.session = chain, session

    async def post(self, method: str, *params: Any, node: int = 0) -> httpx2.Response:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
        return await self.session.post(self.chain.rpc_url(node), json=asked)

    async def result(self, method: str, *params: Any, node: int = 0) -> Any:
        return (await self.post(method, *params, node=node)).json()["result"]

    async def control(self, path: str, **body: Any) -> Any:
        answer = await self.session.post(f"{self.chain.control_url}{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def pay(self, lamports: int) -> str:
        return self.chain.payer.send(pay_sol(self.chain.payer.key, self.chain.treasury.key, lamports))


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with (
        DevChain(mode=Mode.TOWER, nodes=2) as chain,
        httpx2.AsyncClient(trust_env=False, timeout=PATIENCE_SECONDS) as session,
    ):
        yield Caller(chain, session)


async def subscribed(socket: ClientConnection, method: str, *params: Any) -> int:
    await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}))
    number: int = (await heard(socket))["result"]
    return number


async def heard(socket: ClientConnection) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return json.loads(await socket.recv())


async def test_nodes_have_their_paths(caller: Caller) -> None:
    caller.chain.nodes[1].lag_slots = 7
    slots = [await caller.result("getSlot", {"commitment": "processed"}, node=node) for node in (0, 1)]
    missing = await caller.session.post(f"{caller.chain.rpc_url()}/nodes/2", json={})

    assert slots[0] - slots[1] == 7
    assert missing.status_code == 404


async def test_a_payment_is_seen_at_each_commitment_by_those_who_asked(caller: Caller) -> None:
    chain, treasury = caller.chain, str(caller.chain.treasury.key)
    sockets: dict[str, ClientConnection] = {}
    for commitment in ("processed", "confirmed", "finalized"):
        sockets[commitment] = await connect(chain.ws_url(), proxy=None)
        await subscribed(
            sockets[commitment], "logsSubscribe", {"mentions": [treasury]}, {"commitment": commitment}
        )
    signature = caller.pay(5)
    first = await heard(sockets["processed"])
    chain.cluster.tick()
    second = await heard(sockets["confirmed"])
    chain.cluster.tick(31)
    third = await heard(sockets["finalized"])
    for socket in sockets.values():
        await socket.close()

    landed = chain.cluster.find(signature)
    assert landed is not None
    for message in (first, second, third):
        (read,) = responses.parse_websocket_message(json.dumps(message))
        assert isinstance(read, responses.LogsNotification)
        assert str(read.result.value.signature) == signature
        assert read.result.context.slot == landed.slot
        assert read.result.value.err is None


async def test_mentions_leave_others_out_and_name_one_address(caller: Caller) -> None:
    chain = caller.chain
    async with connect(chain.ws_url(), proxy=None) as socket:
        stranger = str(chain.faucet.wallet.key)
        await subscribed(socket, "logsSubscribe", {"mentions": [stranger]}, {"commitment": "processed"})
        caller.pay(5)
        signature = chain.faucet.drop(chain.treasury.key, 1_000)
        assert (await heard(socket))["params"]["result"]["value"]["signature"] == signature
        asked = {"id": 2, "method": "logsSubscribe", "params": [{"mentions": [stranger, stranger]}]}
        await socket.send(json.dumps(asked))
        assert (await heard(socket))["error"]["code"] == -32602


async def test_a_signature_is_told_once_even_if_it_was_there_before(caller: Caller) -> None:
    signature = caller.pay(5)
    async with connect(caller.chain.ws_url(), proxy=None) as socket:
        config = {"commitment": "processed"}
        number = await subscribed(socket, "signatureSubscribe", signature, config)
        told = await heard(socket)
        assert told["params"] == {
            "result": {"context": {"slot": caller.chain.cluster.tip.slot}, "value": {"err": None}},
            "subscription": number,
        }
        (read,) = responses.parse_websocket_message(json.dumps(told))
        assert isinstance(read, responses.SignatureNotification)
        await socket.send(json.dumps({"id": 3, "method": "signatureUnsubscribe", "params": [number]}))
        assert (await heard(socket))["error"]["message"] == "Invalid subscription id."


async def test_an_account_is_told_of_when_it_changed(caller: Caller) -> None:
    chain = caller.chain
    account = chain.treasury.account(chain.mint)
    async with connect(chain.ws_url(), proxy=None) as socket:
        config = {"commitment": "confirmed", "encoding": "jsonParsed"}
        await subscribed(socket, "accountSubscribe", str(account), config)
        chain.payer.send(pay(chain.payer.account(chain.mint), account, chain.payer.key, 42))
        chain.cluster.tick(3)
        told = (await heard(socket))["params"]["result"]["value"]

    assert told["data"]["parsed"]["info"]["tokenAmount"]["amount"] == "42"


async def test_slots_are_told_one_by_one(caller: Caller) -> None:
    tip = caller.chain.cluster.tip.slot
    async with connect(caller.chain.ws_url(), proxy=None) as socket:
        await subscribed(socket, "slotSubscribe")
        caller.chain.cluster.tick(2, skip=1)
        told = [(await heard(socket))["params"]["result"] for _ in range(2)]

    assert told == [
        {"slot": tip + 2, "parent": tip, "root": told[0]["root"]},
        {"slot": tip + 3, "parent": tip + 2, "root": told[1]["root"]},
    ]
    assert told[1]["root"] < tip


async def test_what_lands_again_is_told_again(caller: Caller) -> None:
    cluster = caller.chain.cluster
    base = cluster.tip.slot
    async with connect(caller.chain.ws_url(), proxy=None) as socket:
        await subscribed(socket, "logsSubscribe", "all", {"commitment": "processed"})
        cluster.tick()
        signature = caller.pay(5)
        first = (await heard(socket))["params"]["result"]
        await caller.control("/fork", slot=base)
        assert await caller.control("/land", signature=signature) == {"landed": True}
        second = (await heard(socket))["params"]["result"]

    assert first["value"] == second["value"]
    assert second["context"]["slot"] > first["context"]["slot"]


async def test_a_stalled_socket_loses_what_came_meanwhile_and_a_cut_one_breaks(caller: Caller) -> None:
    async with connect(caller.chain.ws_url(), proxy=None) as socket:
        await subscribed(socket, "logsSubscribe", "all", {"commitment": "processed"})
        await caller.control("/nodes/0/sockets", do="stall")
        caller.pay(1)
        await caller.result("getHealth")  # the loop has been round: the notification had its chance
        await caller.control("/nodes/0/sockets", do="resume")
        await caller.control("/nodes/0/sockets", do="copies", copies=2)
        signature = caller.pay(2)
        twice = [(await heard(socket))["params"]["result"]["value"]["signature"] for _ in range(2)]
        assert twice == [signature] * 2

        assert await caller.control("/nodes/0/sockets", do="cut") == {"cut": 1}
        with pytest.raises(ConnectionClosed) as caught:
            await heard(socket)
        assert caught.value.rcvd is None  # without a word


async def test_faults_of_the_transport(caller: Caller) -> None:
    faults: list[dict[str, Any]] = [
        {"kind": "http", "status": 429, "retry_after": 2},
        {"kind": "http", "status": 502},
        {"kind": "garbage"},
        {"kind": "truncated"},
        {"kind": "timeout"},
    ]
    await caller.control("/nodes/0/faults", method="getSlot", faults=faults)
    limited, gone, garbage = [await caller.post("getSlot") for _ in range(3)]

    assert (limited.status_code, limited.headers["retry-after"]) == (429, "2")
    assert gone.status_code == 502
    with pytest.raises(ValueError, match="Expecting value"):
        garbage.json()
    with pytest.raises(httpx2.RemoteProtocolError):
        await caller.post("getSlot")
    caller.session.timeout = httpx2.Timeout(0.05)
    with pytest.raises(httpx2.ReadTimeout):
        await caller.post("getSlot")
    caller.session.timeout = httpx2.Timeout(PATIENCE_SECONDS)
    assert await caller.result("getSlot") == await caller.result("getSlot", node=1)


async def test_controls_tell_what_is_the_case(caller: Caller) -> None:
    before = (await caller.session.get(f"{caller.chain.control_url}/state")).json()
    await caller.control("/mode", mode="alpenglow")
    await caller.control("/tick", slots=2)
    await caller.control("/hold", holding=True)
    target = str(caller.chain.treasury.key)
    paid = await caller.control("/pay", to=target, amount="5", memo="m", version=1)
    state = (await caller.session.get(f"{caller.chain.control_url}/state")).json()

    assert (before["mode"], state["mode"]) == ("tower", "alpenglow")
    assert state["slots"]["processed"] == before["slots"]["processed"] + 2
    assert state["slots"]["finalized"] == state["slots"]["confirmed"]
    assert state["pool"] == [paid["signature"]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/mode", {"mode": "proof of work"}),
        ("/mode", {}),
        ("/tick", {"slots": -1}),
        ("/fork", {"slot": 1}),
        ("/land", {"signature": "unknown"}),
        ("/webhooks", {"source": "carrier pigeon"}),
        ("/nodes/0/faults", {"faults": [{"kind": "explode"}]}),
        ("/nodes/0/sockets", {"do": "dance"}),
        ("/slot-time", {"slot_ms": 0}),
        ("/tick", [1]),
    ],
)
async def test_controls_refuse_what_there_is_not(caller: Caller, path: str, body: Any) -> None:
    answer = await caller.session.post(f"{caller.chain.control_url}{path}", json=body)

    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_a_taken_port_is_an_error_and_nothing_stays_behind(caller: Caller) -> None:
    taken = int(caller.chain.rpc_url().rpartition(":")[2])
    other = DevChain(control_port=taken)
    with pytest.raises(OSError, match=r"in use"):
        await other.start()


async def test_slots_pass_by_themselves_when_they_are_to() -> None:
    async with DevChain(slot_ms=20, ticking=True) as chain, connect(chain.ws_url(), proxy=None) as socket:
        await subscribed(socket, "slotSubscribe")
        first, second = [(await heard(socket))["params"]["result"]["slot"] for _ in range(2)]

    assert second == first + 1
