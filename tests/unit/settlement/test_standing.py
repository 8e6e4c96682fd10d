"""What the operator is told of treasury and nodes: nothing in it is a key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tempa.settlement.model import SOL, Treasury, TreasuryAccount
from tempa.settlement.quorum import Quorum, Rule
from tempa.settlement.standing import is_of_this_machine, standing, standing_view
from tempa.settlement.watch import TreasuryWatch

WALLET = "H1qYLMXxXkx9Ei3R97A25zLdyP2AX9y1cxcdWLwtZn2a"
NOW = datetime(2026, 12, 1, tzinfo=UTC)
URLS = ("http://127.0.0.1:8899/nodes/1", "https://rpc.provider.test/?api-key=hidden")


class Node:
    def __init__(self, name: str) -> None:
        self.name = name


def watch_of(cluster: str = "") -> TreasuryWatch:
    nodes = cast("Any", [Node("near"), Node("far")])
    quorum = Quorum(nodes, Treasury(cluster=cluster, accounts=()), Rule())
    return TreasuryWatch(quorum=quorum, store=cast("Any", None), wallet=WALLET, mints=())


def found(watch: TreasuryWatch, refusal: str | None = None) -> TreasuryWatch:
    row = TreasuryAccount(asset=SOL, address=WALLET, owner=WALLET, program=None, decimals=9, refusal=refusal)
    watch.quorum.treasury = Treasury(cluster="genesis", accounts=(row,))
    watch.quorum.excluded, watch.quorum.slots = {"far": "node_behind"}, {"near": 900, "far": 10}
    watch.ready.set()
    return watch


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8899",
        "http://127.8.8.8:8899/nodes/1",
        "http://[::1]:8899",
        "http://localhost:8899",
    ],
)
def test_a_node_on_this_machine_is_told(url: str) -> None:
    assert is_of_this_machine(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8899/?api-key=1",
        "http://user:secret@127.0.0.1:8899",
        "http://10.0.0.1:8899",
        "https://rpc.provider.test/hidden",
        "http://127.0.0.1.provider.test",
        "http://localhost.provider.test",
        "http:///nothing",
    ],
)
def test_no_other_is_nor_one_that_may_hold_a_key(url: str) -> None:
    assert not is_of_this_machine(url)


def test_a_known_treasury_is_told_with_its_nodes_and_no_key() -> None:
    view = standing_view(standing(found(watch_of()), URLS), None, NOW)
    near, far = view["nodes"]

    assert (view["is_known"], view["cluster"], view["wallet"]) == (True, "genesis", WALLET)
    assert [row["asset"] for row in view["accounts"]] == [SOL]
    assert (near["rpc_url"], near["slot"], near["excluded"]) == (URLS[0], 900, None)
    assert (far["rpc_url"], far["slot"], far["excluded"]) == (None, 10, "node_behind")
    assert "behind" in far["message"]
    assert "hidden" not in str(view)


def test_a_refusal_is_told_with_what_to_do() -> None:
    (row,) = standing_view(standing(found(watch_of(), "account_frozen"), URLS), None, NOW)["accounts"]
    assert row["refusal"] == "account_frozen"
    assert "Ask the issuer" in row["message"]


def test_what_is_not_known_yet_is_not_blamed_on_the_nodes() -> None:
    view = standing_view(standing(watch_of(), URLS), None, NOW)

    assert (view["is_known"], view["cluster"], view["accounts"]) == (False, None, [])
    assert view["message"]
    assert [node["excluded"] for node in view["nodes"]] == [None, None]


def test_why_payments_wait_is_told_in_the_watchs_own_words() -> None:
    watch = watch_of()
    watch.said = "The node could not be reached."
    assert standing_view(standing(watch, URLS), None, NOW)["message"] == watch.said


def test_payments_that_nobody_looks_up_are_told_of() -> None:
    """Several processes on one database, and none of them with the role settler."""
    told = standing(found(watch_of()), URLS)

    assert "settler" in standing_view(told, NOW - timedelta(seconds=31), NOW)["message"]
    for due_at in (None, NOW - timedelta(seconds=29), NOW + timedelta(hours=1)):
        assert standing_view(told, due_at, NOW)["message"] == "Payments are looked up and credited."


def test_nodes_that_may_not_be_asked_are_told_of() -> None:
    watch = found(watch_of())
    watch.quorum.excluded = {"near": "node_unavailable", "far": "wrong_cluster"}

    view = standing_view(standing(watch, URLS), None, NOW)

    assert view["message"].startswith("Payments wait")
    assert [node["excluded"] for node in view["nodes"]] == ["node_unavailable", "wrong_cluster"]
