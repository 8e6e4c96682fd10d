"""Blocks, and transactions that have their place in one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tempa.testing.devchain.answers import account_keys, version_of

if TYPE_CHECKING:
    from solders.hash import Hash

    from tempa.testing.devchain.bank import Execution


class Mode(StrEnum):
    """Consensus. Tower: final after 32 slots. Alpenglow: what is confirmed is final, a slot behind."""

    TOWER = "tower"
    ALPENGLOW = "alpenglow"


class Commitment(StrEnum):
    """How sure the cluster is."""

    PROCESSED = "processed"
    CONFIRMED = "confirmed"
    FINALIZED = "finalized"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One slot that was not skipped. `height` counts blocks; `time` in Unix seconds, None if unknown."""

    slot: int
    height: int
    blockhash: Hash
    parent_slot: int
    time: int | None
    landed: list[Landed] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Landed:
    """A transaction in a block. `raw` is what was sent: the same bytes may land again on another fork."""

    signature: str
    raw: bytes
    execution: Execution
    block: Block
    index: int

    @property
    def slot(self) -> int:
        """Where it landed."""
        return self.block.slot

    @property
    def version(self) -> int | str:
        """`legacy`, 0 or 1."""
        return version_of(self.execution.transaction)

    def writable(self) -> set[str]:
        """The accounts that it may have changed."""
        return {key["pubkey"] for key in account_keys(self.execution) if key["writable"]}
