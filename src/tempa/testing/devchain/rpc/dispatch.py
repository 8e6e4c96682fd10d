"""JSON-RPC 2.0: one call or a batch, with the faults that wait for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.faults import REFUSALS, TRANSPORT_KINDS, disturbed, take
from tempa.testing.devchain.rpc import accounts, chain, transactions
from tempa.testing.devchain.rpc.call import Call

if TYPE_CHECKING:
    from tempa.testing.devchain.faults import Fault
    from tempa.testing.devchain.node import Node

METHODS = {**chain.METHODS, **transactions.METHODS, **accounts.METHODS}


@dataclass(frozen=True, slots=True)
class Reply:
    """The body to send, or the fault of the transport that is to happen in its place."""

    body: bytes
    fault: Fault | None = None


def reply_to(node: Node, body: bytes) -> Reply:
    """Answer a request's body. Never raises: what cannot be read has an answer, too."""
    try:
        asked = json.loads(body)
    except ValueError:
        return Reply(_encoded(_error(None, RpcFault(-32700, "Parse error"))))
    calls = asked if isinstance(asked, list) else [asked]
    faults = [_next_fault(node, call) for call in calls]
    transport = next((fault for fault in faults if fault and fault.kind in TRANSPORT_KINDS), None)
    if transport is not None and transport.kind in REFUSALS:
        return Reply(b"", transport)
    answers = [answer(node, call, fault) for call, fault in zip(calls, faults, strict=True)]
    return Reply(_encoded(answers if isinstance(asked, list) else answers[0]), transport)


def answer(node: Node, call: Any, fault: Fault | None = None) -> dict[str, Any]:
    """The response object of one call."""
    number = call.get("id") if isinstance(call, dict) else None
    try:
        if fault is None or fault.kind in TRANSPORT_KINDS:
            return _result(number, _call(node, call))
        return _result(number, disturbed(fault, lambda: _call(node, call)))
    except RpcFault as error:
        return _error(number, error)


def _call(node: Node, call: Any) -> Any:
    if not isinstance(call, dict) or not isinstance(call.get("method"), str):
        raise RpcFault(-32600, "Invalid request")
    method = METHODS.get(call["method"])
    if method is None:
        raise RpcFault(-32601, "Method not found")
    params = call.get("params")
    params = [] if params is None else params
    if not isinstance(params, list):
        raise RpcFault(-32602, "Invalid params: expected an array")
    return method(Call(node, params))


def _next_fault(node: Node, call: Any) -> Fault | None:
    name = call.get("method") if isinstance(call, dict) else None
    if not isinstance(name, str):
        return None
    node.calls[name] = node.calls.get(name, 0) + 1
    return take(node.faults, name)


def _result(number: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": result, "id": number}


def _error(number: Any, fault: RpcFault) -> dict[str, Any]:
    told = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        told["data"] = fault.data
    return {"jsonrpc": "2.0", "error": told, "id": number}


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
