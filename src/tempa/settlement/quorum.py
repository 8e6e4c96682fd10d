"""How many nodes have to tell the same before money is credited, and which nodes are asked at all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tempa.core.base58 import is_signature
from tempa.settlement.model import Verdict
from tempa.settlement.ports import NotFound, Trouble
from tempa.settlement.reasons import REASONS, Kind
from tempa.settlement.verify import verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tempa.settlement.model import Receipt, Treasury
    from tempa.settlement.ports import Chain, Found

GENESIS_SECONDS = 1.0
"""A node's answer counts if it named its chain so long ago at most: behind a URL another one may begin."""
SLOT_LAG_MAX = 150  # about 30 s of 200 ms slots: a node that far behind tells of another time


@dataclass(frozen=True, slots=True)
class Rule:
    """`nodes` have to agree on a payment of `above[asset]` base units or more; of an asset not named: always.

    Also on a refusal, whatever its size: that one node calls a payment failed must not cost a customer it.
    With fewer nodes than `nodes` configured, all of them have to.
    """

    nodes: int = 2
    above: Mapping[str, int] = field(default_factory=dict)
    slot_lag_max: int = SLOT_LAG_MAX


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one node answered, for the proof of the credit."""

    node: str
    answer: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Agreed:
    """Enough nodes tell the same: it may be posted, or refused for good."""

    verdict: Verdict
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """Nothing is decided. `reason` is a code of `reasons`, whose kind says what to do.

    `evidence` holds the answers that disagree, for the operator. `retry_after_seconds` is None where no node
    asks for a pause.
    """

    reason: str
    retry_after_seconds: float | None = None
    nodes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


def common_slot(slots: Iterable[int]) -> int:
    """What two nodes have reached, or the only one: one alone may tell a slot of the far future."""
    ordered = sorted(slots, reverse=True)
    return ordered[min(1, len(ordered) - 1)] if ordered else 0


def healthy(slots: Mapping[str, int], lag_max: int = SLOT_LAG_MAX) -> frozenset[str]:
    """The nodes whose finalized slot is at most `lag_max` behind what two of them have reached."""
    head = common_slot(slots.values())
    return frozenset(node for node, slot in slots.items() if slot >= head - lag_max)


def agree(one: Verdict, other: Verdict) -> bool:
    """Whether two nodes tell the same: slot, success, every delta, and what attributes it.

    Not compared: `payer` and `index`, which are for people and which some nodes do not tell, and a
    `block_time` that one of them does not have.
    """
    if (one.signature, one.slot, one.reason, one.error) != (
        other.signature,
        other.slot,
        other.reason,
        other.error,
    ):
        return False
    if one.strays != other.strays or len(one.receipts) != len(other.receipts):
        return False
    if {_outflow(flow) for flow in one.outflows} != {_outflow(flow) for flow in other.outflows}:
        return False
    return all(map(_same_receipt, one.receipts, other.receipts))


def _outflow(flow: Any) -> tuple[str, str, str, int]:
    return flow.asset, flow.account, flow.kind, flow.amount


def _same_receipt(one: Receipt, other: Receipt) -> bool:
    times = {one.block_time, other.block_time} - {None}
    return len(times) < 2 and _compared(one) == _compared(other)


def _compared(receipt: Receipt) -> Receipt:
    return replace(receipt, payer=None, index=None, block_time=None)


class Quorum:
    """Asks nodes about transactions until enough of them agree. Belongs to one event loop.

    `nodes` by preference: the first that may be asked is. Nodes that are behind (`look`), or serve another
    chain than `cluster`, are left out.
    """

    def __init__(self, nodes: Sequence[Chain], treasury: Treasury, rule: Rule) -> None:
        assert nodes, "there is a node to ask"
        assert len({node.name for node in nodes}) == len(nodes), "a node that counts twice is no quorum"
        self.nodes = tuple(nodes)
        self._rule = rule
        self.treasury = treasury
        self.excluded: dict[str, str] = {node.name: "wrong_cluster" for node in nodes}  # until `look`
        self.slots: dict[str, int] = {}
        self._sworn: dict[str, float] = {}  # by node, when it last named the right chain
        self._swearing = {node.name: asyncio.Lock() for node in nodes}

    @property
    def usable(self) -> tuple[Chain, ...]:
        """The nodes that may be asked now, by preference."""
        return tuple(node for node in self.nodes if node.name not in self.excluded)

    async def look(self) -> None:
        """See which nodes serve the right chain and are not behind. Call it at start, then regularly."""
        excluded: dict[str, str] = {}
        slots: dict[str, int] = {}
        answers = await asyncio.gather(*map(self._slot, self.nodes))  # one that is slow holds up no other
        for node, slot in zip(self.nodes, answers, strict=True):
            if isinstance(slot, Trouble):
                excluded[node.name] = slot.reason
            else:
                slots[node.name] = slot
        fit = healthy(slots, self._rule.slot_lag_max)
        excluded.update({name: "node_behind" for name in slots if name not in fit})
        self.excluded, self.slots = excluded, slots

    async def check(self, signature: str) -> Agreed | Held:
        """Verify one transaction, on as many nodes as its value asks for."""
        if not is_signature(signature):  # a node would call it our fault, an alarm
            return Agreed(Verdict(signature=signature, reason="invalid_signature"), ())
        if not self.treasury.accounts:  # at start: any payment would be called nobody's, for good
            return Held("treasury_unknown")
        poll = _Poll(signature, self.treasury, self._rule, len(self.nodes))
        for nodes in self._waves():
            answers = await asyncio.gather(*(self._asked(node, signature) for node in nodes))
            for node, answer in zip(nodes, answers, strict=True):
                poll.take(node.name, answer)
            outcome = poll.outcome()
            if outcome is not None:
                return outcome
        return poll.held(self.excluded)

    async def _asked(self, node: Chain, signature: str) -> Found | NotFound | Trouble:
        answer, doubt = await asyncio.gather(node.get_transaction(signature), self._doubt(node))
        return answer if doubt is None else doubt

    async def _doubt(self, node: Chain) -> Trouble | None:
        """Why what a node says now does not count. One call a second at most, whatever is looked up."""
        async with self._swearing[node.name]:
            now = asyncio.get_running_loop().time()
            if now - self._sworn.get(node.name, -GENESIS_SECONDS) < GENESIS_SECONDS:
                return None
            doubt = await self._genesis_doubt(node)
            if doubt is None:
                self._sworn[node.name] = now
            elif doubt.reason == "wrong_cluster":
                self.excluded[node.name] = doubt.reason
            return doubt

    async def _genesis_doubt(self, node: Chain) -> Trouble | None:
        genesis = await node.genesis_hash()
        if isinstance(genesis, Trouble):
            return genesis
        return None if genesis == self.treasury.cluster else Trouble("wrong_cluster", node.name)

    def _waves(self) -> list[tuple[Chain, ...]]:
        """At once as many as are needed anyhow, then one after the other."""
        usable = self.usable
        first = 1 if self._rule.above else min(self._rule.nodes, len(usable))
        return [usable[:first], *((node,) for node in usable[first:])]

    async def _slot(self, node: Chain) -> int | Trouble:
        return await self._genesis_doubt(node) or await node.slot()


class _Poll:
    """What the nodes have said so far about one transaction."""

    def __init__(self, signature: str, treasury: Treasury, rule: Rule, configured: int) -> None:
        self._signature = signature
        self._treasury = treasury
        self._rule = rule
        self._needed = min(rule.nodes, configured)
        self._verdicts: list[Verdict] = []
        self._evidence: list[Evidence] = []
        self._troubles: list[Trouble] = []
        self._blank: list[str] = []

    def take(self, node: str, answer: Found | NotFound | Trouble) -> None:
        if isinstance(answer, Trouble):
            self._troubles.append(answer)
        elif isinstance(answer, NotFound):
            self._blank.append(node)
        else:
            self._take_found(node, answer)

    def outcome(self) -> Agreed | Held | None:
        """None while more has to be heard."""
        if not self._verdicts:
            return None
        first = self._verdicts[0]
        if not all(agree(first, other) for other in self._verdicts[1:]):
            return Held("nodes_disagree", nodes=self._nodes(), evidence=tuple(self._evidence))
        if len(self._verdicts) >= (self._needed if self._weighs(first) else 1):
            return Agreed(self._best(), tuple(self._evidence))
        return None

    def held(self, excluded: Mapping[str, str]) -> Held:
        """All that may be asked have been, and it is not enough."""
        if self._verdicts:
            return Held("nodes_too_few", self._pause(), self._nodes(), tuple(self._evidence))
        alarms = [trouble for trouble in self._troubles if REASONS[trouble.reason].kind is Kind.ALARM]
        if alarms:
            return Held(alarms[0].reason, self._pause(), tuple(trouble.node for trouble in alarms))
        if self._blank:
            return Held("not_found_yet", self._pause(), tuple(self._blank))
        if self._troubles:
            nodes = tuple(trouble.node for trouble in self._troubles)
            return Held(self._troubles[0].reason, self._pause(), nodes)
        reason = next(iter(excluded.values()), "nodes_too_few")
        return Held(reason, nodes=tuple(excluded))

    def _take_found(self, node: str, found: Found) -> None:
        verdict = verify(found.answer, self._treasury, self._signature)
        if verdict.reason is not None and REASONS[verdict.reason].kind is Kind.TRANSIENT:
            self._troubles.append(Trouble(verdict.reason, node))  # what cannot be read is no testimony
            return
        self._verdicts.append(verdict)
        self._evidence.append(Evidence(node, found.answer))

    def _weighs(self, verdict: Verdict) -> bool:
        if not verdict.receipts or verdict.strays or verdict.outflows:
            return True
        above = self._rule.above
        return any(receipt.amount >= above.get(receipt.asset, 0) for receipt in verdict.receipts)

    def _best(self) -> Verdict:
        """The one that tells most: some nodes have no block time, or no place in the block."""
        return max(self._verdicts, key=_told)

    def _nodes(self) -> tuple[str, ...]:
        return tuple(evidence.node for evidence in self._evidence)

    def _pause(self) -> float | None:
        pauses = [trouble.retry_after_seconds for trouble in self._troubles if trouble.retry_after_seconds]
        return min(pauses, default=None)


def _told(verdict: Verdict) -> int:
    return sum(
        (receipt.block_time is not None) + (receipt.index is not None) + (receipt.payer is not None)
        for receipt in verdict.receipts
    )
