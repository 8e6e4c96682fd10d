"""The watch finds the treasury by asking nodes: none of another chain, and no word they differ in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from tempa.settlement.model import SOL
from tempa.settlement.ports import AccountState
from tempa.settlement.watch import ListedMint
from tempa.testing.devchain import instructions as make
from tempa.testing.devchain.faults import Fault
from tests.integration.chains.till import FINAL_SLOTS, Till

if TYPE_CHECKING:
    import pytest

    from tempa.settlement.ports import Chain, Trouble
    from tempa.testing.devchain.chain import DevChain


async def test_accounts_and_decimals_are_found(chain: DevChain, till: Till) -> None:
    await till.watch.look()

    treasury = till.watch.treasury
    assert treasury is not None
    assert treasury.cluster == chain.cluster.genesis_hash
    found = {row.asset: (row.address, row.decimals, row.refusal) for row in treasury.accounts}
    mint, wallet = str(chain.mint), str(chain.treasury.key)
    assert found == {SOL: (wallet, 9, None), mint: (str(chain.treasury.account(chain.mint)), 6, None)}


async def test_another_chain_than_pinned_is_no_chain_at_all(till: Till) -> None:
    till.watch.cluster = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
    await till.watch.look()

    assert till.watch.treasury is None
    assert set(till.quorum.excluded.values()) == {"wrong_cluster"}


async def test_a_ledger_stays_with_its_chain(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    async with till.settling() as outcomes:
        await till.hear(till.pay_nobody(5_000))
        assert await outcomes.next() == "suspended"
    other = Till(till.chain, till.store, till.wake, till.nodes)
    monkeypatch.setattr(other.watch, "cluster", "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d")
    await other.watch.look()

    assert other.watch.treasury is None
    assert "the ledger's" in other.watch.said


class Forger:
    """A node that says that a mint has other decimals."""

    def __init__(self, node: Chain) -> None:
        self._node = node

    def __getattr__(self, name: str) -> object:
        return getattr(self._node, name)

    async def account(self, address: str, *, min_context_slot: int | None = None) -> AccountState | Trouble:
        answer = await self._node.account(address, min_context_slot=min_context_slot)
        assert isinstance(answer, AccountState)
        if answer.value is None or answer.value["data"]["parsed"]["type"] != "mint":
            return answer
        answer.value["data"]["parsed"]["info"]["decimals"] = 2
        return replace(answer)


async def test_decimals_are_believed_where_all_nodes_tell_the_same(till: Till) -> None:
    honest = till.quorum.nodes
    till.quorum.nodes = (honest[0], honest[1], Forger(honest[2]))  # type: ignore[assignment]
    await till.watch.look()

    assert till.watch.treasury is None
    assert "Nodes tell different things" in till.watch.said
    till.quorum.nodes = honest
    await till.watch.look()
    assert till.watch.treasury is not None


async def test_a_mint_that_is_none_is_said_so(till: Till) -> None:
    till.watch.mints = [ListedMint(mint=str(till.chain.payer.key))]
    await till.watch.look()

    assert till.watch.treasury is None
    assert "mint could not be read" in till.watch.said


async def test_a_treasury_that_was_found_stays_while_nodes_are_away(till: Till) -> None:
    await till.watch.look()
    before = till.watch.treasury
    for node in till.chain.nodes:
        node.faults["*"] = [Fault("http", times=None, status=503)]
    await till.watch.look()

    assert before is not None
    assert till.watch.treasury == before


async def test_who_asks_right_after_the_start_waits_until_the_treasury_is_known(till: Till) -> None:
    asking = asyncio.create_task(till.watch.known(30.0))
    assert await till.watch.known(0.0) is None

    await till.watch.look()

    assert await asking == till.watch.treasury


class Hider:
    """A node that shows no account's delegate."""

    def __init__(self, node: Chain) -> None:
        self._node = node

    def __getattr__(self, name: str) -> object:
        return getattr(self._node, name)

    async def account(self, address: str, *, min_context_slot: int | None = None) -> AccountState | Trouble:
        answer = await self._node.account(address, min_context_slot=min_context_slot)
        assert isinstance(answer, AccountState)
        if answer.value is not None:
            answer.value["data"]["parsed"]["info"].pop("delegate", None)
        return answer


async def test_one_node_cannot_hide_that_somebody_else_may_empty_an_account(till: Till) -> None:
    honest = till.quorum.nodes
    till.quorum.nodes = (Hider(honest[0]), honest[1], honest[2])  # type: ignore[assignment]
    chain = till.chain
    account = chain.treasury.account(chain.mint)
    chain.treasury.send(make.approve(account, chain.payer.key, chain.treasury.key, 5))
    chain.cluster.tick(FINAL_SLOTS)
    await till.watch.look()

    treasury = till.watch.treasury
    assert treasury is not None
    assert [row.refusal for row in treasury.accounts] == [None, "account_delegated"]
