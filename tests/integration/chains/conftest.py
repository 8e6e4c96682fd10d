"""A development chain of three nodes, and our client to each of them over the server's own transport."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tempa.adapters.chains.solana import SolanaRpc
from tempa.adapters.senders.curl import CurlSender
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.testing.devchain.blocks import Mode
from tempa.testing.devchain.chain import DevChain
from tempa.testing.devchain.programs import TOKEN, associated_account
from tests.integration.chains.till import Till

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOOPBACK = (ip_network("127.0.0.0/8"),)
NODES = 3


class Connect(Protocol):
    """A client to one node of the chain."""

    def __call__(self, number: int = 0, **settings: Any) -> SolanaRpc: ...


class Call(Protocol):
    """A client to a URL. Needs no chain, whose start and end take half a second."""

    def __call__(self, url: str, **settings: Any) -> SolanaRpc: ...


@pytest.fixture
async def chain() -> AsyncIterator[DevChain]:
    """Slots pass only when a test says so. In tower mode, what landed is final 32 slots later."""
    async with DevChain(mode=Mode.TOWER, nodes=NODES) as chain:
        yield chain


@pytest.fixture
async def transport() -> AsyncIterator[CurlSender]:
    sender = CurlSender(LOOPBACK, connect_timeout_seconds=2.0, body_seconds=10.0)
    yield sender
    await sender.close()


@pytest.fixture
def call(transport: CurlSender) -> Call:
    def to_url(url: str, **settings: Any) -> SolanaRpc:
        return SolanaRpc(url, transport, **({"timeout_seconds": 10.0} | settings))

    return to_url


@pytest.fixture
def connect(chain: DevChain, call: Call) -> Connect:
    def to_node(number: int = 0, **settings: Any) -> SolanaRpc:
        return call(chain.rpc_url(number), name=f"node {number}", **settings)

    return to_node


@pytest.fixture
def treasury(chain: DevChain) -> Treasury:
    wallet, mint = str(chain.treasury.key), str(chain.mint)
    account = str(associated_account(chain.treasury.key, chain.mint))
    rows = (
        TreasuryAccount(asset=SOL, address=wallet, owner=wallet, program=None, decimals=9),
        TreasuryAccount(asset=mint, address=account, owner=wallet, program=str(TOKEN), decimals=6),
    )
    return Treasury(cluster=chain.cluster.genesis_hash, accounts=rows)


@pytest.fixture
async def till(chain: DevChain, connect: Connect, tmp_path: Path) -> AsyncIterator[Till]:
    """A till that asks two nodes of three, and a third where they differ."""
    wake = InProcessWake()
    store = await SqliteStore.open(tmp_path / "tempa.db", clock=SystemClock(), wake=wake)
    yield Till(chain, store, wake, [connect(number) for number in range(NODES)])
    await store.close()
