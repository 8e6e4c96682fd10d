"""GPU instances over real HTTP, on the real store: offered, rented by one at a time, suspended."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.ids import new_id
from tempa.settlement.wire import GpuInstanceView
from tempa.testing.contracts.samples import ACCOUNT, OTHER_ACCOUNT
from tempa.testing.contracts.settlement_steps import MINT, TOKENS, an_address
from tests.integration.api.renting import INSTANCES, PRICES, QUOTES, Renting, offered, quoted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2

    from tests.integration.api.conftest import Served

UNKNOWN = new_id("gpu")
PRICE = {"asset": "SOL", "amount": "1", "seconds": 1}


@pytest.fixture
def renting(served: Served) -> Renting:
    return Renting(served)


@pytest.fixture
async def http(renting: Renting) -> AsyncIterator[httpx2.AsyncClient]:
    async with renting.client() as client:
        yield client


@pytest.fixture
async def other(renting: Renting) -> AsyncIterator[httpx2.AsyncClient]:
    async with renting.client("payments", account=OTHER_ACCOUNT) as client:
        yield client


async def test_an_instance_is_offered_and_stands_where_its_location_says(http: httpx2.AsyncClient) -> None:
    answer = await http.post(INSTANCES, json={"name": "H200 Nº 7", "prices": PRICES})

    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{INSTANCES}/{made['id']}"
    assert (await http.get(answer.headers["location"])).json() == made
    at = datetime.fromisoformat(made.pop("created_at"))
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60
    assert made.pop("id").startswith("gpu_")
    assert made == {
        "name": "H200 Nº 7",
        "status": "AVAILABLE",
        "current_expiry": None,
        "renter": None,
        "prices": PRICES,
        "suspended_at": None,
    }


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/name", "/prices"]),
        ({"name": "a", "prices": []}, ["/prices"]),
        ({"name": "", "prices": [PRICE]}, ["/name"]),
        ({"name": "a\n", "prices": [PRICE]}, ["/name"]),
        ({"name": "a", "prices": [PRICE], "price": 1}, ["/price"]),
        ({"name": "a", "prices": [PRICE, {**PRICE, "amount": "2"}]}, ["/prices"]),
        ({"name": "a", "prices": [{**PRICE, "asset": "sol"}]}, ["/prices/0/asset"]),
        ({"name": "a", "prices": [{**PRICE, "asset": "1" * 44}]}, ["/prices/0/asset"]),
        ({"name": "a", "prices": [{**PRICE, "asset": MINT + "1"}]}, ["/prices/0/asset"]),
        ({"name": "a", "prices": [{**PRICE, "amount": 5}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "0"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "-5"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "05"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "1.5"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "٣"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "amount": "9007199254740992"}]}, ["/prices/0/amount"]),
        ({"name": "a", "prices": [{**PRICE, "seconds": 0}]}, ["/prices/0/seconds"]),
        ({"name": "a", "prices": [{**PRICE, "seconds": True}]}, ["/prices/0/seconds"]),
        ({"name": "a", "prices": [{**PRICE, "seconds": 1e30}]}, ["/prices/0/seconds"]),
    ],
)
async def test_what_is_wrong_with_an_offer_is_told_all_at_once(
    http: httpx2.AsyncClient, body: Any, pointers: list[str]
) -> None:
    answer = await http.post(INSTANCES, json=body)

    assert answer.status_code == 422
    assert [problem["pointer"] for problem in answer.json()["errors"]] == pointers
    assert (await http.get(INSTANCES)).json()["items"] == []


async def test_a_price_in_an_asset_that_is_not_taken_names_those_that_are(http: httpx2.AsyncClient) -> None:
    strange = {**PRICE, "asset": an_address()}

    answer = await http.post(INSTANCES, json={"name": "a", "prices": [PRICE, strange]})

    (problem,) = answer.json()["errors"]
    assert (problem["pointer"], problem["limit"]) == ("/prices/1/asset", f"SOL, {MINT}")


async def test_only_the_operator_changes_instances(renting: Renting, http: httpx2.AsyncClient) -> None:
    """An account's own `admin` is over its keys, not over everybody's GPUs."""
    made = await offered(http)
    changes = [
        ("POST", INSTANCES, {"name": "a", "prices": PRICES}),
        ("PATCH", f"{INSTANCES}/{made['id']}", {"prices": [PRICE]}),
        ("POST", f"{INSTANCES}/{made['id']}/suspend", {}),
        ("POST", f"{INSTANCES}/{made['id']}/resume", {}),
    ]
    async with (
        renting.client("admin", account=OTHER_ACCOUNT) as admin_elsewhere,
        renting.client("payments", "jobs:write") as no_admin,
    ):
        for method, path, body in changes:
            for client, slug in ((admin_elsewhere, "operator-only"), (no_admin, "missing-scope")):
                answer = await client.request(method, path, json=body)
                assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (403, slug), path

    assert (await http.get(INSTANCES)).json()["items"] == [made]


async def test_instances_are_listed_oldest_first_page_by_page(http: httpx2.AsyncClient) -> None:
    ids = [(await offered(http))["id"] for _ in range(5)]
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (
            await http.get(INSTANCES, params={"limit": 2, **({"cursor": cursor} if cursor else {})})
        ).json()
        seen += [one["id"] for one in page["items"]]
        cursor = page["next_cursor"]

    assert seen == ids


@pytest.mark.parametrize("instance", [UNKNOWN, "gpu_", "quo_1", "x" * 5000])
async def test_an_unknown_instance_is_not_found(http: httpx2.AsyncClient, instance: str) -> None:
    path = f"{INSTANCES}/{instance}"
    answers = [
        await http.get(path),
        await http.patch(path, json={"prices": PRICES}),
        await http.post(f"{path}/suspend"),
        await http.post(f"{path}/resume"),
    ]

    assert [answer.status_code for answer in answers] == [404] * 4


async def test_a_payment_makes_its_payer_the_renter(
    renting: Renting, http: httpx2.AsyncClient, other: httpx2.AsyncClient
) -> None:
    gpu = (await offered(http))["id"]
    quote = await quoted(other, gpu, 3_600)
    before = datetime.now(UTC)
    await renting.pay(quote, 7_200, account=OTHER_ACCOUNT)

    to_itself, to_operator = [(await each.get(f"{INSTANCES}/{gpu}")).json() for each in (other, http)]
    async with renting.client("jobs:write", account=ACCOUNT) as stranger:
        to_stranger = (await stranger.get(f"{INSTANCES}/{gpu}")).json()

    assert (to_itself["status"], to_itself["renter"], to_operator["renter"]) == ("ACTIVE",) + (
        OTHER_ACCOUNT,
    ) * 2
    assert to_stranger == {**to_itself, "renter": "another account"}
    lasts = datetime.fromisoformat(to_itself["current_expiry"]) - before
    assert 3_600 <= lasts.total_seconds() + 0.001 < 3_660
    GpuInstanceView.model_validate(to_stranger)


async def test_a_rented_instance_is_quoted_to_its_renter_alone(
    renting: Renting, http: httpx2.AsyncClient, other: httpx2.AsyncClient
) -> None:
    gpu = (await offered(http))["id"]
    await renting.pay(await quoted(other, gpu, 3_600), 7_200, account=OTHER_ACCOUNT)

    refused = await http.post(QUOTES, json={"gpu_instance_id": gpu, "asset": MINT, "seconds": 60})

    assert (refused.status_code, refused.json()["code"]) == (409, "INSTANCE_RENTED")
    assert (await quoted(other, gpu, 60))["status"] == "open"


async def test_a_suspended_instance_is_quoted_to_nobody_until_it_is_resumed(http: httpx2.AsyncClient) -> None:
    gpu = (await offered(http))["id"]
    ask = {"gpu_instance_id": gpu, "asset": MINT, "seconds": 60}

    first = (await http.post(f"{INSTANCES}/{gpu}/suspend")).json()
    again = (await http.post(f"{INSTANCES}/{gpu}/suspend", json={})).json()
    refused = await http.post(QUOTES, json=ask)
    resumed = [(await http.post(f"{INSTANCES}/{gpu}/resume")).json() for _ in range(2)]

    assert (first["status"], again) == ("SUSPENDED", first)
    assert first["suspended_at"] is not None
    assert (refused.status_code, refused.json()["code"]) == (409, "INSTANCE_SUSPENDED")
    assert [(each["status"], each["suspended_at"]) for each in resumed] == [("AVAILABLE", None)] * 2
    assert (await http.post(QUOTES, json=ask)).status_code == 201


async def test_other_prices_are_for_other_quotes(http: httpx2.AsyncClient) -> None:
    gpu = (await offered(http))["id"]
    quote = await quoted(http, gpu, 3_600)

    changed = await http.patch(
        f"{INSTANCES}/{gpu}", json={"prices": [{"asset": MINT, "amount": "3", "seconds": 1}]}
    )

    assert changed.status_code == 200
    assert changed.json()["prices"] == [{"asset": MINT, "amount": "3", "seconds": 1}]
    assert (await http.get(f"{QUOTES}/{quote['quote_id']}")).json() == quote
    assert (await quoted(http, gpu, 3_600))["amount"] == "10800"
    refused = await http.post(QUOTES, json={"gpu_instance_id": gpu, "asset": "SOL", "seconds": 60})
    assert refused.json()["errors"][0]["limit"] == MINT


async def test_a_price_may_be_set_before_the_treasury_is_known(
    renting: Renting, http: httpx2.AsyncClient
) -> None:
    renting.treasury = None

    assert (await offered(http))["prices"] == PRICES
    renting.treasury = replace(renting.known, accounts=(TOKENS,))
    refused = await http.post(INSTANCES, json={"name": "a", "prices": PRICES})
    assert refused.status_code == 422
