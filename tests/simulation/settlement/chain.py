"""Nodes that answer from the development chain in this process, each with weather of its own.

The answers are those of the served chain (`tempa.testing.devchain`); only HTTP is left out, which has its
tests in tests/integration/chains. Weather stands still while anybody asks, so that a history is the same
however its tasks take turns.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from solders.pubkey import Pubkey

from tempa.settlement.ports import AccountState, Found, NotFound, Sighting, SignatureStatus, Trouble
from tempa.testing.devchain.accounts import account_json
from tempa.testing.devchain.blocks import Commitment
from tempa.testing.devchain.histories import transaction_answer
from tempa.testing.devchain.node import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tempa.testing.devchain.blocks import Landed
    from tests.simulation.settlement.ground import Ground

_FINAL = Commitment.FINALIZED
_MAX_VERSION = 1
FAR_BEHIND_SLOTS = 200  # more than a quorum bears


class Weather(StrEnum):
    """What a node does to whoever asks it."""

    FAIR = "fair"
    DOWN = "down"
    BUSY = "busy"  # 429
    SLOW = "slow"
    CUT = "cut"  # half an answer
    OLD = "old"  # it will not show this version of a transaction
    BLANK = "blank"  # it shows no transaction
    FORGETFUL = "forgetful"  # it lists no account's history


_TROUBLES = {
    Weather.DOWN: Trouble("node_unreachable", ""),
    Weather.BUSY: Trouble("node_rate_limited", "", retry_after_seconds=3.0),
    Weather.SLOW: Trouble("node_timeout", ""),
}


class Lie(StrEnum):
    """What a lying node alters. It tells the same lie whenever it is asked of the same."""

    NONE = "none"
    MORE = "more"  # ten times what came
    LESS = "less"
    FAILED = "failed"  # what went through has failed
    SUCCEEDED = "succeeded"  # what has failed went through, and paid
    FOREIGN = "foreign"  # it was another quote's
    INVENTED = "invented"  # a payment that there never was


@dataclass
class ClusterChain:
    """`Chain`: one node. `references`: of quotes, for a FOREIGN lie; at `poison`, a signature, it breaks."""

    ground: Ground
    number: int
    lag_slots: int = 0
    weather: Weather = Weather.FAIR
    lie: Lie = Lie.NONE
    references: Sequence[str] = ()
    page_limit: int = 1000
    poison: str = ""
    told_lies: int = 0
    name: str = field(init=False)

    def __post_init__(self) -> None:
        self.name = f"node-{self.number}"
        self._node = Node(self.ground.chain, self.number)

    def _trouble(self) -> Trouble | None:
        self._node.lag_slots = self.lag_slots
        told = _TROUBLES.get(self.weather)
        return None if told is None else Trouble(told.reason, self.name, told.retry_after_seconds)

    async def get_transaction(self, signature: str) -> Found | NotFound | Trouble:
        """As the node sees it, or would have it seen."""
        if (trouble := self._trouble()) is not None:
            return trouble
        if self.weather is Weather.OLD:
            return Trouble("version_unsupported", self.name)
        if signature == self.poison:
            raise RuntimeError("a fault of our own, in this one lookup")
        landed = self._node.find(signature, _FINAL)
        if self.weather is Weather.BLANK:
            return NotFound(self.name)
        if landed is None:
            invented = self._invented(signature) if self.lie is Lie.INVENTED else None
            return NotFound(self.name) if invented is None else Found(invented, self.name)
        answer = transaction_answer(landed, "jsonParsed", _MAX_VERSION)
        told = self._lied(answer, landed)
        if self.weather is Weather.CUT:
            told["meta"].pop("postBalances")
        return Found(told, self.name)

    async def signatures_for_address(
        self,
        address: str,
        *,
        before: str | None = None,
        limit: int = 1000,
        min_context_slot: int | None = None,
    ) -> list[Sighting] | Trouble:
        """Newest first; a `before` that is not known ends it."""
        if (trouble := self._trouble()) is not None:
            return trouble
        if min_context_slot is not None and min_context_slot > self._node.block(_FINAL).slot:
            return Trouble("node_behind", self.name)
        rows = [] if self.weather is Weather.FORGETFUL else self._node.history(address, _FINAL)
        if before is not None:
            names = [landed.signature for landed in rows]
            rows = rows[names.index(before) + 1 :] if before in names else []
        return [
            Sighting(
                signature=landed.signature,
                slot=landed.slot,
                failed=landed.execution.err is not None,
                block_time=landed.block.time,
            )
            for landed in rows[: min(limit, self.page_limit)]
        ]

    async def statuses(self, signatures: Sequence[str]) -> list[SignatureStatus | None] | Trouble:
        """How far each has come."""
        if (trouble := self._trouble()) is not None:
            return trouble
        return [self._status(signature) for signature in signatures]

    def _status(self, signature: str) -> SignatureStatus | None:
        landed = self._node.find(signature, Commitment.PROCESSED)
        if landed is None:
            return None
        commitment = self._node.commitment_of(landed.slot)
        assert commitment is not None
        return SignatureStatus(landed.slot, landed.execution.err is not None, commitment.value)

    async def account(self, address: str, *, min_context_slot: int | None = None) -> AccountState | Trouble:
        """As of the newest final slot."""
        if (trouble := self._trouble()) is not None:
            return trouble
        slot = self._node.block(_FINAL).slot
        if min_context_slot is not None and min_context_slot > slot:
            return Trouble("node_behind", self.name)
        bank = self.ground.chain.bank
        found = self._node.account(Pubkey.from_string(address), _FINAL)
        return AccountState(slot, account_json(bank, found, "jsonParsed"))

    async def slot(self) -> int | Trouble:
        """The newest final one."""
        return self._trouble() or self._node.block(_FINAL).slot

    async def block_height(self) -> int | Trouble:
        """The newest final one's."""
        return self._trouble() or self._node.block(_FINAL).height

    async def genesis_hash(self) -> str | Trouble:
        """Which chain it is."""
        return self._trouble() or self.ground.chain.genesis_hash

    async def close(self) -> None:
        """Nothing to be closed."""

    # Lies

    def _lied(self, answer: dict[str, Any], landed: Landed) -> dict[str, Any]:
        failed = landed.execution.err is not None
        if self.lie in {Lie.MORE, Lie.LESS} and not failed:
            return self._altered(answer, landed, 10 if self.lie is Lie.MORE else 0)
        if self.lie is Lie.FAILED and not failed:
            self.told_lies += 1
            told = copy.deepcopy(answer)
            told["meta"]["err"] = {"InstructionError": [0, {"Custom": 1}]}
            return told
        if self.lie is Lie.SUCCEEDED and failed:
            told = self._altered(answer, landed, 1)
            told["meta"]["err"] = None
            return told
        return self._foreign(answer) if self.lie is Lie.FOREIGN and not failed else answer

    def _altered(self, answer: dict[str, Any], landed: Landed, factor: int) -> dict[str, Any]:
        """Each gain of the treasury times `factor`, and a million lamports more if that is not 0."""
        self.told_lies += 1
        told = copy.deepcopy(answer)
        meta, keys = told["meta"], [key["pubkey"] for key in told["transaction"]["message"]["accountKeys"]]
        owned = {row["accountIndex"]: int(row["uiTokenAmount"]["amount"]) for row in meta["preTokenBalances"]}
        treasury = str(self.ground.treasury.key)
        for row in meta["postTokenBalances"]:
            if row["owner"] == treasury:
                before = owned.get(row["accountIndex"], 0)
                gain = int(row["uiTokenAmount"]["amount"]) - before
                row["uiTokenAmount"]["amount"] = str(before + gain * factor)
        if treasury in keys:
            at = keys.index(treasury)
            before = meta["preBalances"][at]
            meta["postBalances"][at] = before + (meta["postBalances"][at] - before) * factor
            meta["postBalances"][at] += 1_000_000 if factor else 0
        return told

    def _foreign(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Another quote's reference in the place of each."""
        rng = random.Random(answer["transaction"]["signatures"][0])
        told: dict[str, Any] = copy.deepcopy(answer)
        for key in told["transaction"]["message"]["accountKeys"]:
            if key["pubkey"] in self.references:
                key["pubkey"] = rng.choice(self.references)
                self.told_lies += 1
        return told

    def _invented(self, signature: str) -> dict[str, Any] | None:
        """Another payment's answer under this signature."""
        rows = self._node.history(str(self.ground.treasury.key), _FINAL)
        paid = [landed for landed in rows if landed.execution.err is None]
        if not paid:
            return None
        told = transaction_answer(paid[0], "jsonParsed", _MAX_VERSION)
        told["transaction"]["signatures"] = [signature]
        self.told_lies += 1
        return self._altered(told, paid[0], 5)
