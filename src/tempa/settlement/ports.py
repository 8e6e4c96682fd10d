"""What the settlement slice asks of the world."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The chain


@dataclass(frozen=True, slots=True)
class Found:
    """A transaction, finalized: the member `result` of the node's answer. `node` is its name."""

    answer: Mapping[str, Any]
    node: str


@dataclass(frozen=True, slots=True)
class NotFound:
    """The node does not show it at finality. Never a failure: it may land, or this node may be behind."""

    node: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """No answer, and why: a code of `reasons`, transient or an alarm to the operator.

    `detail` is for the log: the node's own words, bounded, without the URL, which may hold a key.
    """

    reason: str
    node: str
    retry_after_seconds: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One row of an account's history. `failed`: it did nothing. `block_time` in Unix seconds."""

    signature: str
    slot: int
    failed: bool
    block_time: int | None


@dataclass(frozen=True, slots=True)
class SignatureStatus:
    """How far a transaction has come: `processed`, `confirmed` or `finalized`."""

    slot: int
    failed: bool
    commitment: str


@dataclass(frozen=True, slots=True)
class AccountState:
    """An account as of `slot`: the node's `jsonParsed` value, None if there is no such account."""

    slot: int
    value: Mapping[str, Any] | None


class Chain(Protocol):
    """One node of the chain, at finality. Never raises for anything a node can do: `Trouble` tells of it.

    No call is tried twice: who asks knows when to ask again, or whom.
    """

    @property
    def name(self) -> str: ...  # for people: without the key that a URL may hold

    async def get_transaction(self, signature: str) -> Found | NotFound | Trouble: ...
    async def signatures_for_address(
        self,
        address: str,
        *,
        before: str | None = None,
        limit: int = 1000,
        min_context_slot: int | None = None,
    ) -> list[Sighting] | Trouble: ...  # newest first, in any order within a slot; `before`: a signature
    async def statuses(
        self, signatures: Sequence[str]
    ) -> list[SignatureStatus | None] | Trouble: ...  # in the order asked; None: not known
    async def account(
        self, address: str, *, min_context_slot: int | None = None
    ) -> AccountState | Trouble: ...
    async def slot(self) -> int | Trouble: ...
    async def block_height(self) -> int | Trouble: ...
    async def genesis_hash(self) -> str | Trouble: ...
    async def close(self) -> None: ...
