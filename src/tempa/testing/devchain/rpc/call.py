"""The arguments of one call, read as nodes read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey
from solders.signature import Signature

from tempa.testing.devchain.admission import RpcFault
from tempa.testing.devchain.answers import ENCODINGS
from tempa.testing.devchain.blocks import Commitment

if TYPE_CHECKING:
    from tempa.testing.devchain.node import Node


@dataclass(frozen=True, slots=True)
class Call:
    """One call at one node."""

    node: Node
    params: list[Any]

    def argument(self, index: int) -> Any:
        """A positional one. Raises RpcFault -32602 if it is missing."""
        if len(self.params) <= index:
            raise RpcFault(-32602, f"`params` should have at least {index + 1} argument(s)")
        return self.params[index]

    def config(self, index: int) -> dict[str, Any]:
        """The object at the end, empty if it is missing. A bare string is an encoding, as of old."""
        value = self.params[index] if len(self.params) > index else None
        if isinstance(value, str):
            return {"encoding": value}
        if value is not None and not isinstance(value, dict):
            raise RpcFault(-32602, "Invalid params: invalid type, expected a configuration object.")
        return value or {}

    def commitment(self, config: dict[str, Any], *, at_least_confirmed: bool = False) -> Commitment:
        """Finalized unless told otherwise. Raises RpcFault; also if `minContextSlot` is not reached."""
        told = str(config.get("commitment") or Commitment.FINALIZED.value)
        if told not in _COMMITMENTS:
            raise RpcFault(-32602, f"Invalid params: unknown variant `{told}`.")
        commitment = Commitment(told)
        if at_least_confirmed and commitment is Commitment.PROCESSED:
            raise RpcFault(-32602, "Method does not support commitment below `confirmed`")
        slot, wanted = self.node.block(commitment).slot, config.get("minContextSlot")
        if wanted is not None and slot < wanted:
            told_data = {"contextSlot": slot}
            raise RpcFault(-32016, "Minimum context slot has not been reached", told_data)
        return commitment

    def in_context(self, value: Any, commitment: Commitment) -> dict[str, Any]:
        """A value with the slot that it is of."""
        return {
            "context": {"slot": self.node.block(commitment).slot, "apiVersion": API_VERSION},
            "value": value,
        }


DEV_CHAIN = "tempa-dev-chain"
"""A member of what `getVersion` answers, on this chain alone: real money is never mistaken for its."""
API_VERSION = "4.3.0"
_COMMITMENTS = frozenset(commitment.value for commitment in Commitment)


def public_key(text: Any) -> Pubkey:
    """Raises RpcFault -32602."""
    try:
        return Pubkey.from_string(text)
    except (ValueError, TypeError) as error:
        raise RpcFault(-32602, "Invalid param: Invalid") from error


def signature(text: Any) -> str:
    """Raises RpcFault -32602."""
    try:
        return str(Signature.from_string(text))
    except (ValueError, TypeError) as error:
        raise RpcFault(-32602, "Invalid param: Invalid") from error


def encoding(config: dict[str, Any], default: str = "json", known: tuple[str, ...] = ENCODINGS) -> str:
    """Raises RpcFault -32602 for one that there is not."""
    told = config.get("encoding") or default
    if told not in known:
        raise RpcFault(-32602, f"Invalid params: unknown variant `{told}`.")
    return str(told)


def whole(value: Any, what: str) -> int:
    """A slot or a count. Raises RpcFault -32602."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise RpcFault(-32602, f"Invalid params: invalid {what}, expected u64.")
    return value
