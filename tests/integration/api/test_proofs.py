"""`GET /v1/payments/{signature}/proof`: whose proof it is, and that a reader can check it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tempa.settlement.attestation import Attestor
from tempa.settlement.check import Checked, check_proof
from tempa.testing.contracts.settlement_steps import a_signature
from tests.contract.shop import TERMS, TREASURY, Shop
from tests.integration.api.renting import Renting

if TYPE_CHECKING:
    from tests.integration.api.conftest import Served

ATTESTOR = Attestor(b"s" * 32)


@pytest.fixture
def renting(served: Served) -> Renting:
    proofs = replace(served.parts.proofs, treasury=lambda: TREASURY, terms=TERMS, attestor=ATTESTOR)
    served.app.state.parts = replace(served.parts, proofs=proofs)
    return Renting(served)


async def test_a_proof_is_had_over_http_and_checked_without_the_server(renting: Renting) -> None:
    shop = Shop(renting.bench)
    signature = await shop.pays(7_200, await shop.quote(await shop.instance()))
    async with renting.client("payments", account="acme") as client:
        answer = await client.get(f"/v1/payments/{signature}/proof")

    assert answer.status_code == 200
    checked = check_proof(answer.json(), ATTESTOR.public_key)
    assert isinstance(checked, Checked), checked
    assert (checked.signature, checked.seconds) == (signature, 3_600)
    assert answer.headers["cache-control"] == "no-store"


async def test_a_proof_is_whose_credit_it_is(renting: Renting) -> None:
    shop = Shop(renting.bench)
    signature = await shop.pays(7_200, await shop.quote(await shop.instance()))
    nobodys = await shop.pays(7_200)

    async def status(path: str, account: str, *scopes: str) -> int:
        async with renting.client(*scopes, account=account) as client:
            return (await client.get(f"/v1/payments/{path}/proof")).status_code

    assert await status(signature, "globex", "payments") == 404
    assert await status(signature, "globex", "admin") == 404  # over its own account only
    assert await status(signature, "acme", "jobs:read") == 403
    assert await status(signature, "default", "admin") == 200
    assert await status(nobodys, "acme", "payments") == 404
    assert await status(nobodys, "default", "admin") == 200
    assert await status(a_signature(), "default", "admin") == 404
    assert await status("nonsense", "default", "admin") == 404


async def test_where_no_payments_are_taken_there_is_no_proof(renting: Renting, served: Served) -> None:
    shop = Shop(renting.bench)
    signature = await shop.pays(7_200, await shop.quote(await shop.instance()))
    served.app.state.parts = served.parts  # as it was made: without a treasury
    async with renting.client("payments", account="acme") as client:
        answer = await client.get(f"/v1/payments/{signature}/proof")

    assert answer.status_code == 501
    assert answer.json()["type"].endswith("payments-not-configured")
