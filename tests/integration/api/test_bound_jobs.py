"""Jobs on a rented instance over real HTTP: refused with a quote, admitted once it is paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.core.ids import new_id
from tempa.settlement.model import Treasury
from tempa.settlement.quoting import Quoting
from tempa.testing.contracts.bench import StoreBench
from tempa.testing.contracts.settlement_steps import CLUSTER, HOUR, TOKENS, an_instance, known, pay
from tempa.wiring.allowance import RentalAllowance

if TYPE_CHECKING:
    import httpx2

    from tests.integration.api.conftest import Served

PATH = "/v1/models/generate"
ACCOUNT = "default"


@pytest.fixture
def bench(served: Served) -> StoreBench:
    return StoreBench(store=served.store, clock=cast("Any", served.parts.clock), wake=served.parts.wake)


@pytest.fixture
async def gpu(served: Served, bench: StoreBench) -> str:
    """An instance that nobody rents, on a server that takes payments."""
    treasury = Treasury(cluster=CLUSTER, accounts=(TOKENS,))
    quoting = Quoting(
        store=served.store, treasury=known(treasury), clock=served.parts.clock, lock_seconds=900
    )
    served.parts.intake.allowance = RentalAllowance(
        store=served.store, clock=served.parts.clock, quoting=quoting
    )
    return await an_instance(bench)


async def ask(http: httpx2.AsyncClient, gpu: str, key: str | None = None, path: str = PATH) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"engine": "trial", "parameters": {"do": "finish"}, "gpu_instance_id": gpu}
    return await http.post(path, json=body, headers=headers)


async def pay_quote(bench: StoreBench, quote_id: str) -> None:
    quote = await bench.store.quote(ACCOUNT, quote_id)
    assert quote is not None
    await pay(bench, quote.offer, quote.offer.amount)


async def test_who_pays_the_quote_of_the_refusal_is_let_in(
    http: httpx2.AsyncClient, bench: StoreBench, gpu: str
) -> None:
    refused = await ask(http, gpu, "k1")

    assert (refused.status_code, refused.headers["content-type"]) == (402, "application/problem+json")
    body = refused.json()
    assert (body["type"], body["code"]) == ("urn:tempa:problem:rental-required", "RENTAL_REQUIRED")
    assert (body["quote"]["gpu_instance_id"], body["quote"]["amount"]) == (gpu, str(HOUR.amount))
    assert body["solana_pay_url"].startswith("solana:")
    assert (await ask(http, gpu, "k1")).json()["quote"] == body["quote"]

    await pay_quote(bench, body["quote"]["quote_id"])
    admitted = await ask(http, gpu, "k1")

    assert admitted.status_code == 202
    job = (await http.get(admitted.headers["location"])).json()
    assert (job["gpu_instance_id"], job["status"]) == (gpu, "queued")


async def test_a_replay_and_a_retry_when_the_instance_is_no_longer_to_be_had(
    http: httpx2.AsyncClient, served: Served, bench: StoreBench, gpu: str
) -> None:
    await pay_quote(bench, (await ask(http, gpu)).json()["quote"]["quote_id"])
    first = await ask(http, gpu, "k1")
    await served.fail(await served.claim(), "RENTAL_EXPIRED")
    await bench.store.suspend_instance(gpu)

    again, other = await ask(http, gpu, "k1"), await ask(http, gpu, "k2")
    retried = await http.post(f"{first.headers['location']}/retry")

    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert again.json()["job_id"] == first.json()["job_id"]
    for refused in (other, retried):
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:tempa:problem:instance-suspended")


@pytest.mark.parametrize("name", ["gpu-1", "unheard-of"])
async def test_an_instance_that_is_not_known_is_a_mistake(
    http: httpx2.AsyncClient, gpu: str, name: str
) -> None:
    refused = await ask(http, new_id("gpu") if name == "unheard-of" else name)

    assert refused.status_code == 422
    assert [entry["pointer"] for entry in refused.json()["errors"]] == ["/gpu_instance_id"]


async def test_a_job_that_is_bound_to_nothing_shows_none(http: httpx2.AsyncClient) -> None:
    body = {"engine": "trial", "parameters": {"do": "finish"}}

    admitted = await http.post(PATH, json=body)

    assert admitted.status_code == 202
    assert (await http.get(admitted.headers["location"])).json()["gpu_instance_id"] is None
