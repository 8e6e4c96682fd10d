"""A node's view of the cluster: how far behind it is, and in which order it tells what lies in one slot."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tempa.testing.devchain.blocks import Commitment

if TYPE_CHECKING:
    from solders.account import Account
    from solders.pubkey import Pubkey

    from tempa.testing.devchain.blocks import Block, Landed
    from tempa.testing.devchain.cluster import Cluster
    from tempa.testing.devchain.faults import Fault

_RISING = (Commitment.FINALIZED, Commitment.CONFIRMED, Commitment.PROCESSED)


@dataclass(slots=True, eq=False)
class Node:
    """One RPC node. `calls` counts what it was asked, by method; `faults` wait for theirs, `*` for any."""

    cluster: Cluster
    number: int = 0
    lag_slots: int = 0
    latency_seconds: float = 0.0
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)

    def block(self, commitment: Commitment) -> Block:
        """The newest block that it has at a commitment."""
        return self.cluster.block(commitment, self.lag_slots)

    def sees(self, landed: Landed, commitment: Commitment) -> bool:
        """Whether a transaction has come so far, here."""
        return landed.slot <= self.block(commitment).slot

    def commitment_of(self, slot: int) -> Commitment | None:
        """The highest that a slot has reached, here; None if the node has not come to it."""
        for commitment in _RISING:
            if slot <= self.block(commitment).slot:
                return commitment
        return None

    def find(self, signature: str, commitment: Commitment) -> Landed | None:
        """None if it has not landed, or not come so far, here."""
        landed = self.cluster.find(signature)
        return landed if landed is not None and self.sees(landed, commitment) else None

    def account(self, key: Pubkey, commitment: Commitment) -> Account | None:
        """An account as it was at the newest block of a commitment."""
        return self.cluster.account(key, self.block(commitment).slot)

    def history(self, address: str, commitment: Commitment) -> list[Landed]:
        """What named an address, newest first.

        Inside of one slot each node has an order of its own, as real ones do (anza-xyz/agave#907); the first
        node's is the block's.
        """
        newest, known = self.block(commitment).slot, self.cluster.history(address)
        seen = known[: bisect_right(known, newest, key=lambda landed: landed.slot)]
        if self.number == 0:
            return seen[::-1]
        return sorted(seen, key=lambda landed: (landed.slot, self._rank(landed)), reverse=True)

    def _rank(self, landed: Landed) -> bytes:
        return hashlib.sha256(f"{self.number} {landed.signature}".encode()).digest()
