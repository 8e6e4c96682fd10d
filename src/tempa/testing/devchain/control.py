"""The control plane: what only God, a cluster or a bad day can do, over HTTP for tests in other processes.

| request | body | what it does |
|---|---|---|
| `GET /state` | | slots, mode, pool, nodes, webhooks |
| `POST /tick` | `{"slots": 1, "skip": 0}` | so many blocks, after slots without one |
| `POST /mode` | `{"mode": "tower" or "alpenglow"}` | consensus |
| `POST /slot-time` | `{"slot_ms"}` | how fast slots pass, if they do by themselves |
| `POST /fork` | `{"slot"}` or `{"back"}` | abandon what is above a slot, or the newest so many slots |
| `POST /expire` | | every blockhash of now grows too old |
| `POST /hold` | `{"holding"}` | what is sent waits in the pool |
| `POST /land`, `POST /drop` | `{"signature"}` | one of the pool lands, or is lost |
| `POST /nodes/{n}` | `{"lag_slots", "latency_seconds"}` | how far behind, how slow |
| `POST /nodes/{n}/faults` | `{"method", "faults": [..]}` | queued for a method, or for `*`; see `faults` |
| `DELETE /nodes/{n}/faults` | | as if nothing was queued |
| `POST /nodes/{n}/sockets` | `{"do": "cut", "stall", "resume", "copies"}` | of its WebSockets |
| `POST /webhooks` | `{"source", "url", "secret", ..}` | a provider posts there from now on: `couriers.Hook` |
| `POST /airdrop` | `{"address", "lamports"}` | SOL out of the faucet |
| `POST /pay` | `{"to", "asset", "amount", "reference", "memo", "version"}` | from the funded wallet |
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.blocks import Commitment, Mode
from tempa.testing.devchain.couriers import Hook, parcel_json
from tempa.testing.devchain.faults import Fault
from tempa.testing.devchain.payments import Payment
from tempa.testing.devchain.providers import MAKERS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from tempa.testing.devchain.devnet import Devnet
    from tempa.testing.devchain.node import Node

    _Act = Callable[[Devnet, dict[str, Any]], Any]
    _NodeAct = Callable[[Devnet, int, dict[str, Any]], Any]


class Mistake(ValueError):  # noqa: N818 - it says what is the case
    """The control plane was asked for what there is not."""


def control_app(chain: Devnet) -> Starlette:
    """The application."""
    routes = [Route("/state", _route(chain, lambda chain, _: _state(chain)), methods=["GET"])]
    routes += [Route(path, _route(chain, act), methods=["POST"]) for path, act in _ACTS.items()]
    for method, path, act in _NODE_ACTS:
        routes.append(Route(path, _node_route(chain, act), methods=[method]))
    return Starlette(routes=routes)


def _route(chain: Devnet, act: _Act) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        return await _done(request, lambda body: act(chain, body))

    return endpoint


def _node_route(chain: Devnet, act: _NodeAct) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def endpoint(request: Request) -> JSONResponse:
        number = request.path_params["number"]
        if number >= len(chain.nodes):
            return JSONResponse({"error": f"there is no node {number}"}, 404)
        return await _done(request, lambda body: act(chain, number, body))

    return endpoint


async def _done(request: Request, act: Callable[[dict[str, Any]], Any]) -> JSONResponse:
    try:
        body = json.loads(await request.body() or b"{}")
        if not isinstance(body, dict):
            raise Mistake("the body is a JSON object, or nothing")
        return JSONResponse(act(body) or {})
    except RpcFault as fault:
        return JSONResponse({"error": fault.message, "code": fault.code, "data": fault.data}, 409)
    except KeyError as error:
        return JSONResponse({"error": f"missing, or not there: {error}"}, 400)
    except (ValueError, TypeError) as error:
        return JSONResponse({"error": str(error)}, 400)


def _state(chain: Devnet) -> dict[str, Any]:
    cluster = chain.cluster
    return {
        "mode": cluster.mode.value,
        "genesis_hash": cluster.genesis_hash,
        "slots": {commitment.value: cluster.block(commitment).slot for commitment in Commitment},
        "pool": list(cluster.pool),
        "holding": cluster.holding,
        "nodes": [_node(node) for node in chain.nodes],
        "webhooks": [
            {"source": courier.hook.source, "parcels": [parcel_json(one) for one in courier.parcels]}
            for courier in chain.couriers
        ],
    }


def _node(node: Node) -> dict[str, Any]:
    queued = {method: len(queue) for method, queue in node.faults.items() if queue}
    slow = {"lag_slots": node.lag_slots, "latency_seconds": node.latency_seconds}
    return {**slow, "faults": queued, "calls": dict(node.calls)}


def _tick(chain: Devnet, body: dict[str, Any]) -> dict[str, Any]:
    chain.cluster.tick(_count(body, "slots", 1), skip=_count(body, "skip", 0))
    return {"slot": chain.cluster.tip.slot}


def _mode(chain: Devnet, body: dict[str, Any]) -> None:
    chain.cluster.set_mode(Mode(body["mode"]))


def _slot_time(chain: Devnet, body: dict[str, Any]) -> None:
    slot_ms = _count(body, "slot_ms", 0)
    if not slot_ms:
        raise Mistake("slot_ms must be 1 or more")
    chain.cluster.slot_ms = slot_ms


def _fork(chain: Devnet, body: dict[str, Any]) -> dict[str, Any]:
    slot = body["slot"] if "slot" in body else chain.cluster.tip.slot - _count(body, "back", 1)
    return {"forgotten": chain.cluster.fork(slot), "slot": chain.cluster.tip.slot}


def _hold(chain: Devnet, body: dict[str, Any]) -> None:
    chain.cluster.holding = body["holding"] is True


def _hook(chain: Devnet, body: dict[str, Any]) -> None:
    known = {one.name for one in fields(Hook)}
    if set(body) - known or body.get("source") not in MAKERS:
        raise Mistake(f"a webhook has a source of {', '.join(MAKERS)}, and {', '.join(sorted(known))}")
    told = {**body, "addresses": tuple(body.get("addresses", ()))}
    if "commitment" in told:
        told["commitment"] = Commitment(told["commitment"])
    chain.post_to(Hook(**told))


def _airdrop(chain: Devnet, body: dict[str, Any]) -> dict[str, Any]:
    target = Pubkey.from_string(body["address"])
    return {"signature": chain.faucet.drop(target, _count(body, "lamports", 0))}


def _pay(chain: Devnet, body: dict[str, Any]) -> dict[str, Any]:
    payment = Payment.of(body)
    return {"signature": chain.payer.send(*payment.instructions(chain.payer.key), version=payment.version)}


def _tune(chain: Devnet, number: int, body: dict[str, Any]) -> None:
    node = chain.nodes[number]
    node.lag_slots = _count(body, "lag_slots", node.lag_slots)
    node.latency_seconds = float(body.get("latency_seconds", node.latency_seconds))


def _queue(chain: Devnet, number: int, body: dict[str, Any]) -> None:
    queue = chain.nodes[number].faults.setdefault(body.get("method", "*"), [])
    queue += [Fault(**one) for one in body["faults"]]


def _unqueue(chain: Devnet, number: int, _: dict[str, Any]) -> None:
    chain.nodes[number].faults.clear()


def _sockets(chain: Devnet, number: int, body: dict[str, Any]) -> dict[str, Any]:
    line, deed = chain.lines[number], body["do"]
    if deed == "cut":
        return {"cut": line.cut()}
    if deed in ("stall", "resume"):
        line.stalled = deed == "stall"
    elif deed == "copies":
        line.copies = _count(body, "copies", 2)
    else:
        raise Mistake(f"sockets can cut, stall, resume and copies, not {deed!r}")
    return {}


def _count(body: dict[str, Any], name: str, default: int) -> int:
    value = body.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Mistake(f"{name} must be a whole number, 0 or more")
    return value


_ACTS: dict[str, _Act] = {
    "/tick": _tick,
    "/mode": _mode,
    "/slot-time": _slot_time,
    "/fork": _fork,
    "/expire": lambda chain, _: chain.cluster.expire(),
    "/hold": _hold,
    "/land": lambda chain, body: {"landed": chain.cluster.land(body["signature"])},
    "/drop": lambda chain, body: chain.cluster.drop(body["signature"]),
    "/webhooks": _hook,
    "/airdrop": _airdrop,
    "/pay": _pay,
}
_NODE_ACTS: tuple[tuple[str, str, _NodeAct], ...] = (
    ("POST", "/nodes/{number:int}", _tune),
    ("POST", "/nodes/{number:int}/faults", _queue),
    ("DELETE", "/nodes/{number:int}/faults", _unqueue),
    ("POST", "/nodes/{number:int}/sockets", _sockets),
)
