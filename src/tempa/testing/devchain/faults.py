"""What can be wrong with a node's answers, one by one, and lies."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.tokens import ui_amount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS = ("null", "error", "http", "timeout", "truncated", "garbage", "wrong_err", "amount")
TRANSPORT_KINDS = frozenset({"http", "timeout", "truncated", "garbage"})
REFUSALS = frozenset({"http", "garbage"})
"""The node is not asked at all. With the other two it did what it was told, and nobody hears of it."""
_LIE: Any = {"InstructionError": [0, {"Custom": 1}]}


class UnknownFault(ValueError):  # noqa: N818 - it says what is the case
    """Asked for a fault that there is not."""


@dataclass(slots=True)
class Fault:
    """One queued fault.

    - `kind`: `null` (as if unknown), `error` (JSON-RPC `code`), `http` (`status`, `retry_after` seconds),
      `timeout` (never answers), `truncated`, `garbage` (200 and a page of HTML), `wrong_err` (a failed
      transaction is told as good and the other way round), `amount` (each balance afterwards is told higher
      by `amount`).
    - `times`: how often; None for good.
    """

    kind: str
    times: int | None = 1
    code: int = -32005
    status: int = 429
    retry_after: float | None = None
    amount: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownFault(f"no such fault: {self.kind!r}; there are {', '.join(KINDS)}")
        if self.times is not None and self.times < 1:
            raise UnknownFault("times must be 1 or more, or null")


def take(faults: Mapping[str, list[Fault]], method: str) -> Fault | None:
    """The next fault for a method, its own before those for any (`*`)."""
    for queue in (faults.get(method), faults.get("*")):
        if queue:
            return _used(queue)
    return None


def disturbed(fault: Fault, answer: Callable[[], Any]) -> Any:
    """The result that a node gives with this fault. Raises RpcFault."""
    if fault.kind == "null":
        return None
    if fault.kind == "error":
        raise RpcFault(fault.code, *_ERRORS.get(fault.code, ("injected fault", None)))
    lied = copy.deepcopy(answer())
    if fault.kind == "wrong_err":
        _turn(lied)
    else:
        _raise(lied, fault.amount)
    return lied


def _used(queue: list[Fault]) -> Fault:
    fault = queue[0]
    if fault.times is not None:
        fault.times -= 1
        if fault.times == 0:
            queue.pop(0)
    return fault


def _turn(answer: Any) -> None:
    """Deny an error where there is one, claim one where there is none, at any depth."""
    if isinstance(answer, list):
        for item in answer:
            _turn(item)
    elif isinstance(answer, dict):
        if "err" in answer:
            answer["err"] = None if answer["err"] is not None else _LIE
            if "status" in answer:
                answer["status"] = {"Ok": None} if answer["err"] is None else {"Err": answer["err"]}
            return
        for item in answer.values():
            _turn(item)


def _raise(answer: Any, amount: int) -> None:
    meta = answer.get("meta") if isinstance(answer, dict) else None
    if not meta:
        return
    meta["postBalances"] = [balance + amount for balance in meta["postBalances"]]
    for row in meta["postTokenBalances"]:
        told = row["uiTokenAmount"]
        row["uiTokenAmount"] = ui_amount(int(told["amount"]) + amount, told["decimals"])


_NEWER = (
    "Transaction version (2) is not supported by the requesting client. Please try the request again with "
    'the following configuration parameter: "maxSupportedTransactionVersion": 2'
)
_ERRORS: dict[int, tuple[str, Any]] = {
    -32004: ("Block not available for slot", None),
    -32005: ("Node is behind by 150 slots", {"numSlotsBehind": 150}),
    -32014: ("Block status not yet available for slot", None),
    -32015: (_NEWER, None),
    -32603: ("Internal error", None),
}
