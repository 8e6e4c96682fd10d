"""How many nodes must agree: one that lies, lags, fails or serves another chain never moves money."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import replace
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import pytest

from tempa.settlement.ports import Found, NotFound, Trouble
from tempa.settlement.quorum import Agreed, Held, Quorum, Rule, agree, healthy
from tempa.settlement.verify import verify
from tests.unit.settlement.verify_samples import (
    CLUSTER,
    SIGNATURE,
    TREASURY,
    USD,
    WALLET,
    answer,
    key,
    memo,
    paid,
    signature_of,
    transfer,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

HONEST = paid(500, keys=(key("ref"),), instructions=(transfer(500, key("ref")),))


class FakeNode:
    """Says what it is told to say."""

    def __init__(self, name: str, says: Any, slot: int | Trouble = 1000, genesis: Any = CLUSTER) -> None:
        self.name = name
        self.says = says
        self.asked = 0
        self._slot = slot
        self._genesis = genesis

    async def get_transaction(self, signature: str) -> Found | NotFound | Trouble:
        self.asked += 1
        if self.says is None:
            return NotFound(self.name)
        return (
            Found(self.says, self.name) if isinstance(self.says, dict) else Trouble(self.says, self.name, 3.0)
        )

    async def slot(self) -> int | Trouble:
        return self._slot

    async def genesis_hash(self) -> str | Trouble:
        return self._genesis  # type: ignore[no-any-return]

    async def signatures_for_address(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    statuses = account = block_height = close = signatures_for_address


def nodes(*says: Any) -> list[FakeNode]:
    return [FakeNode(f"node {place}", one) for place, one in enumerate(says)]


async def checked(asked: Sequence[FakeNode], rule: Rule | None = None) -> Agreed | Held:
    quorum = Quorum(asked, TREASURY, rule or Rule())
    await quorum.look()
    return await quorum.check(SIGNATURE)


def lie(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(HONEST)
    at: Any = changed
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return changed


LIES = {
    "amount": lie(("meta", "postTokenBalances", 0, "uiTokenAmount", "amount"), "9000000"),
    "less": lie(("meta", "postTokenBalances", 0, "uiTokenAmount", "amount"), "101"),
    "nothing": lie(("meta", "postTokenBalances", 0, "uiTokenAmount", "amount"), "100"),
    "error": lie(("meta", "err"), {"InstructionError": [0, {"Custom": 1}]}),
    "slot": lie(("slot",), 401),
    "time": lie(("blockTime",), 1_790_000_001),
    "reference": lie(("transaction", "message", "accountKeys", 3, "pubkey"), key("attacker")),
    "sol": lie(("meta", "postBalances", 0), 0),
    "memo": paid(500, keys=(key("ref"),), instructions=(transfer(500, key("ref")), memo("tempa:x"))),
}


async def test_two_nodes_that_agree_are_enough() -> None:
    asked = nodes(HONEST, HONEST, HONEST)
    outcome = await checked(asked)

    assert isinstance(outcome, Agreed)
    assert outcome.verdict.receipts[0].amount == 500
    assert [evidence.node for evidence in outcome.evidence] == ["node 0", "node 1"]
    assert asked[2].asked == 0


async def test_before_the_treasurys_accounts_are_known_nothing_is_decided() -> None:
    """A server has just started: a payment, or a refund of its own, would be called nobody's for good."""
    asked = nodes(HONEST, HONEST)
    quorum = Quorum(asked, replace(TREASURY, accounts=()), Rule())
    await quorum.look()

    outcome = await quorum.check(SIGNATURE)

    assert isinstance(outcome, Held)
    assert outcome.reason == "treasury_unknown"
    quorum.treasury = TREASURY
    assert isinstance(await quorum.check(SIGNATURE), Agreed)


@pytest.mark.parametrize("name", sorted(set(LIES) - {"sol"}))
@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_lying_node_of_three_never_changes_a_balance(name: str, place: int) -> None:
    says = [HONEST, HONEST, HONEST]
    says[place] = LIES[name]

    outcome = await checked(nodes(*says))

    if isinstance(outcome, Agreed):  # the liar was not asked
        assert place == 2
        assert [receipt.amount for receipt in outcome.verdict.receipts] == [500]
    else:
        assert outcome.reason == "nodes_disagree"
        assert len(outcome.evidence) == 2


async def test_what_does_not_touch_the_treasury_is_no_disagreement() -> None:
    assert isinstance(await checked(nodes(HONEST, LIES["sol"])), Agreed)


async def test_every_mixture_of_three_nodes_credits_the_truth_or_nothing() -> None:
    """At most one of them lies; the others are honest, do not know it yet, or fail."""
    others = (HONEST, None, "node_timeout", "version_unsupported")
    for lying, first, second in product((LIES["amount"], LIES["error"]), others, others):
        for says in permutations((lying, first, second)):
            outcome = await checked(nodes(*says))
            if isinstance(outcome, Agreed):
                assert [receipt.amount for receipt in outcome.verdict.receipts] == [500]


async def test_small_amounts_take_one_node_and_large_ones_two() -> None:
    rule = Rule(above={USD: 501})
    small, large = nodes(HONEST, HONEST), nodes(HONEST, HONEST)

    assert isinstance(await checked(small, rule), Agreed)
    assert isinstance(await checked(large, replace(rule, above={USD: 500})), Agreed)
    assert [node.asked for node in (*small, *large)] == [1, 0, 1, 1]


async def test_a_refusal_takes_two_nodes_too() -> None:
    rule = Rule(above={USD: 10**9})
    failed = LIES["error"]

    assert (await checked(nodes(failed, HONEST), rule)).reason == "nodes_disagree"  # type: ignore[union-attr]
    outcome = await checked(nodes(failed, failed), rule)
    assert isinstance(outcome, Agreed)
    assert outcome.verdict.reason == "transaction_failed"


@pytest.mark.parametrize(
    ("says", "reason", "pause"),
    [
        ((None, None), "not_found_yet", None),
        ((HONEST, None), "nodes_too_few", None),
        ((None, HONEST), "nodes_too_few", None),
        ((HONEST, "node_rate_limited"), "nodes_too_few", 3.0),
        (("node_timeout", "node_timeout"), "node_timeout", 3.0),
        ((None, "node_timeout"), "not_found_yet", 3.0),
        ((None, "version_unsupported"), "version_unsupported", 3.0),
        (({"meta": None}, HONEST), "nodes_too_few", None),
        (({"meta": None}, {"slot": 1}), "meta_missing", None),
    ],
    ids=range(9),
)
async def test_what_is_not_decided_is_held_with_its_reason(
    says: tuple[Any, ...], reason: str, pause: float | None
) -> None:
    outcome = await checked(nodes(*says))

    assert isinstance(outcome, Held)
    assert (outcome.reason, outcome.retry_after_seconds) == (reason, pause)


async def test_a_third_node_stands_in_for_one_that_does_not_answer() -> None:
    for silent in (None, "node_timeout", {"meta": None}):
        assert isinstance(await checked(nodes(HONEST, silent, HONEST)), Agreed)


async def test_a_single_node_decides_alone_where_there_is_no_other() -> None:
    assert isinstance(await checked(nodes(HONEST)), Agreed)


async def test_of_two_nodes_one_of_which_is_out_the_other_does_not_decide() -> None:
    behind = FakeNode("behind", HONEST, slot=Trouble("node_unreachable", "behind"))
    outcome = await checked([FakeNode("fit", HONEST), behind])

    assert isinstance(outcome, Held)
    assert outcome.reason == "nodes_too_few"
    assert behind.asked == 0


async def test_a_node_of_another_chain_is_never_asked_for_money() -> None:
    devnet = FakeNode("devnet", HONEST, genesis=key("devnet"))
    outcome = await checked([devnet])

    assert isinstance(outcome, Held)
    assert (outcome.reason, devnet.asked) == ("wrong_cluster", 0)


async def test_a_node_that_is_behind_is_left_out_until_it_has_caught_up() -> None:
    late = FakeNode("late", HONEST, slot=849)
    quorum = Quorum([late, *nodes(HONEST, HONEST)], TREASURY, Rule())

    await quorum.look()
    assert quorum.excluded == {"late": "node_behind"}
    late._slot = 850
    await quorum.look()
    assert quorum.excluded == {}


async def test_nothing_is_asked_before_the_nodes_were_looked_at() -> None:
    asked = nodes(HONEST, HONEST)
    outcome = await Quorum(asked, TREASURY, Rule()).check(SIGNATURE)

    assert isinstance(outcome, Held)
    assert [node.asked for node in asked] == [0, 0]


async def test_a_text_that_is_no_signature_is_refused_without_asking() -> None:
    asked = nodes(HONEST)
    outcome = await Quorum(asked, TREASURY, Rule()).check("hello")

    assert isinstance(outcome, Agreed)
    assert outcome.verdict.reason == "invalid_signature"
    assert asked[0].asked == 0


async def test_the_nodes_that_are_needed_anyhow_are_asked_at_once() -> None:
    both = asyncio.Barrier(2)

    class Waiting(FakeNode):
        async def get_transaction(self, signature: str) -> Found | NotFound | Trouble:
            async with asyncio.timeout(10):
                await both.wait()
            return await super().get_transaction(signature)

    assert isinstance(await checked([Waiting("a", HONEST), Waiting("b", HONEST)]), Agreed)


async def test_the_verdict_that_tells_most_is_kept() -> None:
    full = {**HONEST, "transactionIndex": 4}
    outcome = await checked(nodes({**HONEST, "blockTime": None}, full))

    assert isinstance(outcome, Agreed)
    assert (outcome.verdict.receipts[0].index, outcome.verdict.receipts[0].block_time) == (4, 1_790_000_000)


@pytest.mark.parametrize(
    ("slots", "fit"),
    [
        ({}, set()),
        ({"a": 5}, {"a"}),
        ({"a": 1000, "b": 1000, "c": 850, "d": 849}, {"a", "b", "c"}),
        ({"a": 10**12, "b": 1000, "c": 990}, {"a", "b", "c"}),
        ({"a": 1000, "b": 100}, {"a", "b"}),
    ],
    ids=["none", "one", "lag", "liar", "two"],
)
def test_health_is_measured_from_what_two_nodes_have_reached(slots: dict[str, int], fit: set[str]) -> None:
    """Of two alone nobody can say which one is wrong."""
    assert healthy(slots, 150) == fit


def test_outflows_are_compared_too() -> None:
    one = verify(answer(lamports={WALLET: (90, 50)}), TREASURY, SIGNATURE)
    other = verify(answer(lamports={WALLET: (90, 49)}), TREASURY, SIGNATURE)

    assert agree(one, one)
    assert not agree(one, other)
    assert not agree(one, replace(one, signature=signature_of("other")))
