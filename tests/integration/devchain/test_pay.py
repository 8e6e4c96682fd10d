"""`tempa dev pay`: it finds the chain by the server, and pays on no other kind of chain."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tempa.cli.demo_chain import DemoChain, demo_chain, wait_until_final
from tempa.testing.devchain.payments import PaymentFault, Rpc, pay_request
from tests.unit.cli import conftest as cli
from tests.unit.cli.test_payments import QUOTE, TREASURY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.unit.cli.conftest import FakeServer, Terminal

server, tempa = cli.server, cli.tempa  # the same fixtures
NODE = TREASURY["nodes"][0]


@pytest.fixture(scope="module")
def chain() -> Iterator[DemoChain]:
    with demo_chain() as running:
        yield running


@pytest.fixture(autouse=True)
def settings_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEMPA_SOLANA__RPC_URLS", raising=False)


def quoted(chain: DemoChain, server: FakeServer) -> None:
    url = f"solana:{chain.treasury}?amount=1.8&spl-token={chain.mint}"
    server.on_json("GET /v1/rentals/quotes/quo_1", {**QUOTE, "asset": chain.mint, "solana_pay_url": url})


def received(chain: DemoChain, printed: str) -> None:
    """The chain has the transaction whose signature was printed."""
    signature = json.loads(printed)["signature"]
    rpc = chain.rpc()
    wait_until_final(rpc, signature)
    found = rpc.call("getTransaction", signature, {"encoding": "jsonParsed", "commitment": "finalized"})
    assert found["meta"]["err"] is None
    assert found["meta"]["postTokenBalances"]


def test_the_chain_is_found_by_the_servers_settings(
    chain: DemoChain,
    server: FakeServer,
    tempa: Terminal,
) -> None:
    quoted(chain, server)
    nodes = [{**NODE, "rpc_url": None}, {**NODE, "rpc_url": chain.rpc_url}]
    server.on_json("GET /v1/payments/treasury", {**TREASURY, "nodes": nodes})
    result = tempa.run("dev", "pay", "quo_1", "--json")

    assert result.exit_code == 0, result.output
    received(chain, result.stdout)


@pytest.mark.parametrize(
    ("status", "slug"), [(403, "missing-scope"), (403, "operator-only"), (501, "payments-not-configured")]
)
def test_where_the_server_does_not_tell_the_settings_here_do(
    chain: DemoChain,
    server: FakeServer,
    tempa: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    slug: str,
) -> None:
    quoted(chain, server)
    server.refuse("GET /v1/payments/treasury", status, slug, "No.")
    monkeypatch.setenv("TEMPA_SOLANA__RPC_URLS", f'["{chain.rpc_url}"]')
    received(chain, tempa.run("dev", "pay", "quo_1").stdout)


def test_a_chain_that_is_named_wins_and_the_server_is_not_asked(
    chain: DemoChain,
    server: FakeServer,
    tempa: Terminal,
) -> None:
    quoted(chain, server)
    received(chain, tempa.run("dev", "pay", "quo_1", "--rpc-url", chain.rpc_url).stdout)
    assert len(server.requests) == 1


def test_where_nobody_knows_a_chain_it_says_what_to_give(
    chain: DemoChain,
    server: FakeServer,
    tempa: Terminal,
) -> None:
    quoted(chain, server)
    server.on_json("GET /v1/payments/treasury", TREASURY)  # its nodes are a provider's
    result = tempa.run("dev", "pay", "quo_1")

    assert result.exit_code == 2
    assert "--rpc-url" in result.stderr


def test_a_chain_that_does_not_answer_is_not_reachable(
    chain: DemoChain,
    server: FakeServer,
    tempa: Terminal,
) -> None:
    quoted(chain, server)
    result = tempa.run("dev", "pay", "quo_1", "--rpc-url", "http://127.0.0.1:1/?api-key=hidden")

    assert result.exit_code == 5
    assert "hidden" not in result.output


class Mainnet(Rpc):
    """As real nodes answer; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__("https://mainnet.test/?api-key=hidden")
        self.asked: list[str] = []

    def call(self, method: str, *_: Any) -> Any:
        self.asked.append(method)
        return {"solana-core": "4.3.0", "feature-set": 1}


def test_nothing_is_paid_on_a_chain_of_another_kind() -> None:
    rpc = Mainnet()
    with pytest.raises(PaymentFault, match="no development chain") as refused:
        pay_request(rpc, "solana:H1qYLMXxXkx9Ei3R97A25zLdyP2AX9y1cxcdWLwtZn2a?amount=1", "SOL")

    assert rpc.asked == ["getVersion"]
    assert "hidden" not in str(refused.value)
