"""`GET /v1/payments/treasury`: the operator's alone, and no transaction's signature."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.settlement.standing import NodeStanding, Standing
from tempa.testing.contracts.settlement_steps import LAMPORTS, TOKENS
from tests.integration.api.renting import Renting

if TYPE_CHECKING:
    from tests.integration.api.conftest import Served

PATH = "/v1/payments/treasury"
STANDING = Standing(
    wallet=LAMPORTS.owner,
    cluster="genesis",
    accounts=(LAMPORTS, replace(TOKENS, refusal="account_frozen")),
    nodes=(NodeStanding(name="a", rpc_url="http://127.0.0.1:1", slot=7, excluded=None),),
    said="",
)


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


def watch(renting: Renting, found: Standing | None) -> None:
    state = renting.served.app.state
    state.parts = replace(state.parts, standing=lambda: found)


async def test_the_operator_sees_accounts_and_nodes(renting: Renting) -> None:
    watch(renting, STANDING)
    async with renting.client() as http:
        answer = await http.get(PATH)

    body = answer.json()
    assert answer.status_code == 200
    assert (body["is_known"], body["wallet"]) == (True, LAMPORTS.owner)
    assert [row["refusal"] for row in body["accounts"]] == [None, "account_frozen"]
    assert body["nodes"][0]["rpc_url"] == "http://127.0.0.1:1"


@pytest.mark.parametrize("scope", ["payments", "jobs:read"])
async def test_nobody_else_does(renting: Renting, scope: str) -> None:
    watch(renting, STANDING)
    async with renting.client(scope) as http:
        assert (await http.get(PATH)).status_code == 403


async def test_another_accounts_admin_is_no_operator(renting: Renting) -> None:
    watch(renting, STANDING)
    async with renting.client("admin", account="renters") as http:
        answer = await http.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (403, "OPERATOR_ONLY")


async def test_a_server_without_payments_says_what_to_set(renting: Renting) -> None:
    async with renting.client() as http:
        answer = await http.get(PATH)
    assert (answer.status_code, answer.json()["code"]) == (501, "PAYMENTS_NOT_CONFIGURED")
    assert "solana.treasury" in answer.json()["detail"]
