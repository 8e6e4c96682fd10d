"""Three nodes of one chain, one of which lies, lags or fails: nothing but what was paid is ever agreed."""

from __future__ import annotations

import asyncio
import random
from itertools import product
from typing import TYPE_CHECKING

import pytest

from tempa.settlement.quorum import Agreed, Held, Quorum, Rule
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault

if TYPE_CHECKING:
    from tempa.settlement.model import Treasury
    from tempa.testing.devchain.chain import DevChain
    from tests.integration.chains.conftest import Connect

FINAL_SLOTS = 33


@pytest.fixture
async def quorum(chain: DevChain, connect: Connect, treasury: Treasury) -> Quorum:
    quorum = Quorum([connect(0), connect(1), connect(2)], treasury, Rule())
    await quorum.look()
    assert quorum.excluded == {}
    return quorum


def pay(chain: DevChain, lamports: int) -> str:
    signature = chain.payer.send(make.pay_sol(chain.payer.key, chain.treasury.key, lamports))
    chain.cluster.tick(FINAL_SLOTS)
    return signature


async def test_a_liar_gets_no_money_credited(chain: DevChain, quorum: Quorum) -> None:
    for liar, lie in product((0, 1, 2), ("amount", "wrong_err")):
        signature = pay(chain, 5_000 + liar)
        chain.nodes[liar].faults["getTransaction"] = [Fault(lie)]

        outcome = await quorum.check(signature)

        chain.nodes[liar].faults.clear()
        if liar == 2:  # two that agree are enough: it is not asked
            assert isinstance(outcome, Agreed)
            assert [receipt.amount for receipt in outcome.verdict.receipts] == [5_002]
        else:
            assert isinstance(outcome, Held)
            assert outcome.reason == "nodes_disagree"


async def test_random_troubles_delay_a_payment_and_never_change_it(chain: DevChain, quorum: Quorum) -> None:
    dice = random.Random(7)
    kinds = ["null", "garbage", "truncated", "amount", "wrong_err"]
    for lamports in range(1_000, 1_020):
        signature = pay(chain, lamports)
        bad = chain.nodes[dice.randrange(3)]
        bad.faults["getTransaction"] = [Fault(dice.choice(kinds))]
        outcome = await quorum.check(signature)
        for node in chain.nodes:
            node.faults.clear()
        if isinstance(outcome, Held):
            outcome = await quorum.check(signature)

        assert isinstance(outcome, Agreed)
        assert [receipt.amount for receipt in outcome.verdict.receipts] == [lamports]
        assert len(outcome.evidence) == 2


async def test_a_node_far_behind_is_left_out_until_it_has_caught_up(chain: DevChain, quorum: Quorum) -> None:
    chain.cluster.tick(400)
    chain.nodes[0].lag_slots = 300
    await quorum.look()

    assert quorum.excluded == {"node 0": "node_behind"}
    assert isinstance(await quorum.check(pay(chain, 9_000)), Agreed)
    assert chain.nodes[0].calls.get("getTransaction", 0) == 0
    chain.nodes[0].lag_slots = 0
    await quorum.look()
    assert quorum.excluded == {}


async def test_a_fork_takes_what_was_never_final(chain: DevChain, quorum: Quorum) -> None:
    signature = chain.payer.send(make.pay_sol(chain.payer.key, chain.treasury.key, 6_000))
    chain.cluster.tick()
    chain.cluster.fork(chain.cluster.tip.slot - 2)
    chain.cluster.tick(FINAL_SLOTS)

    outcome = await quorum.check(signature)

    landed = chain.cluster.find(signature) is not None
    assert isinstance(outcome, Agreed) == landed
    if isinstance(outcome, Held):
        assert outcome.reason == "not_found_yet"


async def test_another_chain_behind_the_same_url_gets_nothing_credited(
    chain: DevChain, quorum: Quorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two looks at the nodes: each answer counts only beside the chain's name."""
    monkeypatch.setattr("tempa.settlement.quorum.GENESIS_SECONDS", 0.0)
    signature = pay(chain, 7_000)
    assert isinstance(await quorum.check(signature), Agreed)
    monkeypatch.setattr(type(chain.cluster), "genesis_hash", "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d")

    outcome = await quorum.check(signature)

    assert isinstance(outcome, Held)
    assert outcome.reason == "wrong_cluster"
    assert set(quorum.excluded.values()) == {"wrong_cluster"}


async def test_the_chains_name_is_asked_for_once_a_second_however_much_is_looked_up(
    chain: DevChain, quorum: Quorum
) -> None:
    signatures = [pay(chain, 5_000 + number) for number in range(10)]
    before = chain.nodes[0].calls["getGenesisHash"]

    await asyncio.gather(*map(quorum.check, signatures))

    assert chain.nodes[0].calls["getGenesisHash"] - before <= 2
