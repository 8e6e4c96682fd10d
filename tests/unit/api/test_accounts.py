"""What an account may ask for, at the door: how often, how many jobs, how much of the kernel a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.links import SignedLinks
from tests.unit.api.conftest import BODY, LINK_KEY, NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from tests.unit.api.conftest import World

ROUTE = "/v1/models/generate"
MANY = 200


def is_too_many(answer: httpx2.Response, *words: str) -> bool:
    """Whether it is a 429 that says these words and when to come back."""
    problem = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) >= 1
    assert problem["type"] == "urn:tempa:problem:too-many-requests"
    assert problem["code"] == "TOO_MANY_REQUESTS"
    missing = [word for word in words if word not in problem["detail"]]
    assert not missing, problem["detail"]
    return answer.status_code == 429


async def calls(http: httpx2.AsyncClient, count: int, path: str = "/v1/engines") -> list[httpx2.Response]:
    return [await http.get(path) for _ in range(count)]


def let_in(answers: list[httpx2.Response]) -> int:
    """How many were answered; the others must be 429."""
    assert all(answer.status_code == 200 or is_too_many(answer, "requests_per_second") for answer in answers)
    return sum(answer.status_code == 200 for answer in answers)


@pytest.mark.parametrize(("rate", "burst"), [(1.0, 10), (5.0, 10), (20.0, 40)])
async def test_a_burst_is_two_seconds_worth_and_at_least_ten(
    world: World, http: httpx2.AsyncClient, rate: float, burst: int
) -> None:
    world.accounts.allow("default", requests_per_second=rate)

    assert let_in(await calls(http, burst + 5)) == burst


async def test_the_rate_holds_over_time(world: World, http: httpx2.AsyncClient) -> None:
    """For as long as it is tried: the burst, and then what the rate gives."""
    world.accounts.allow("default", requests_per_second=2.5)
    answered = 0
    for _ in range(80):
        answered += let_in(await calls(http, 2))
        world.clock.advance(0.25)

    assert answered == 10 + int(2.5 * 79 * 0.25)


async def test_who_waits_as_long_as_told_is_let_in(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", requests_per_second=0.4)
    refused = (await calls(http, 11))[-1]
    assert is_too_many(refused, "0.4", "requests_per_second")
    assert refused.headers["retry-after"] == "3"  # 2.5 s until there is a token

    world.clock.advance(2.0)
    assert let_in(await calls(http, 1)) == 0
    world.clock.advance(0.5)
    assert let_in(await calls(http, 2)) == 1


async def test_a_rest_earns_no_more_than_the_burst(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", requests_per_second=1.0)
    await calls(http, 20)
    world.clock.advance(3600.0)

    assert let_in(await calls(http, 20)) == 10


async def test_an_accounts_rate_is_its_own_whatever_keys_it_uses(world: World) -> None:
    world.accounts.allow("default", requests_per_second=1.0)
    async with world.client("jobs:read") as first, world.client("jobs:read") as second:
        assert let_in([*await calls(first, 6), *await calls(second, 6)]) == 10
    async with world.bare_client() as other:
        headers = {"Authorization": f"Bearer {world.add_key('jobs:read', account='other')}"}
        answers = [await other.get("/v1/engines", headers=headers) for _ in range(MANY)]
    assert let_in(answers) == MANY


async def test_health_metrics_and_links_to_artifacts_are_not_counted(world: World) -> None:
    world.accounts.allow("default", requests_per_second=1.0)
    job = await world.finish(await world.a_job())
    links = SignedLinks(public_url="", keys=[LINK_KEY], ttl_seconds=60, clock=world.clock)
    link, _ = links.artifact(job.id, "model.step")
    async with world.client("jobs:read") as http:
        await calls(http, 11)
        for path in ("/livez", "/readyz", "/metrics", link):
            assert {answer.status_code for answer in await calls(http, 30, path)} == {200}
        assert let_in(await calls(http, 1)) == 0


async def test_a_jobs_token_is_counted_as_its_accounts_request(world: World) -> None:
    job = await world.a_job()
    async with world.client("jobs:read") as http:
        token = (await http.post(f"/v1/jobs/{job.id}/token")).json()["token"]
    world.clock.advance(10.0)
    world.accounts.allow("default", requests_per_second=1.0)
    async with world.bare_client() as browser:
        answers = await calls(browser, 15, f"/v1/jobs/{job.id}?token={token}")

    assert let_in(answers) == 10


async def test_a_key_that_is_not_known_spends_nobodys_rate(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", requests_per_second=1.0)
    async with world.bare_client() as stranger:
        headers = {"Authorization": "Bearer tempa_sk_" + "x" * 43}
        for _ in range(20):
            assert (await stranger.get("/v1/engines", headers=headers)).status_code == 401

    assert let_in(await calls(http, 10)) == 10


async def test_limits_that_were_changed_hold_within_five_seconds(
    world: World, http: httpx2.AsyncClient
) -> None:
    await calls(http, 3)
    looked_up = world.accounts.look_ups
    world.accounts.allow("default", requests_per_second=1.0)
    assert let_in(await calls(http, MANY)) == MANY  # remembered
    assert world.accounts.look_ups == looked_up

    world.clock.advance(5.0)
    assert let_in(await calls(http, 20)) == 10


async def test_the_settings_limits_hold_for_accounts_without_their_own(
    make_world: Callable[..., World],
) -> None:
    plain = make_world()
    limits = plain.limits.model_copy(update={"account_requests_per_second": 1.0, "account_queued_max": 2})
    world = make_world(limits=limits)
    world.accounts.allow("roomy", requests_per_second=100.0)
    async with world.bare_client() as http:
        for account, expected in (("small", 10), ("roomy", 50)):
            headers = {"Authorization": f"Bearer {world.add_key('jobs:read', account=account)}"}
            answers = [await http.get("/v1/engines", headers=headers) for _ in range(50)]
            assert let_in(answers) == expected


def ask(number: int, **more: Any) -> dict[str, Any]:
    return {**BODY, "tags": {"n": str(number)}, **more}


async def test_a_full_account_is_told_its_limit_and_how_many_jobs_it_has(
    world: World, http: httpx2.AsyncClient
) -> None:
    world.accounts.allow("default", queued_max=3)
    tickets = [await http.post(ROUTE, json=ask(number)) for number in range(3)]
    refused = await http.post(ROUTE, json=ask(3), headers={"Idempotency-Key": "fourth"})

    assert [ticket.status_code for ticket in tickets] == [202] * 3
    assert is_too_many(refused, "3 jobs that wait or run", "queued_max is 3")
    assert [problem["limit"] for problem in refused.json()["errors"]] == [3]
    assert len(world.jobs.rows) == 3
    assert not [key for key in world.jobs.keys if "fourth" in key]
    # What stands is still found, and another takes the place of one that ends.
    assert (await http.post(ROUTE, json=ask(0))).status_code == 200
    world.jobs.tell(tickets[0].json()["job_id"], "job.canceled")
    assert (await http.post(ROUTE, json=ask(3))).status_code == 202


async def test_a_retry_needs_room_too(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", queued_max=1)
    ended = (await http.post(ROUTE, json=ask(0))).json()["job_id"]
    world.jobs.tell(ended, "job.canceled")
    assert (await http.post(ROUTE, json=ask(1))).status_code == 202

    assert is_too_many(await http.post(f"/v1/jobs/{ended}/retry"), "queued_max is 1")


async def test_a_spent_day_refuses_new_jobs_until_midnight(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", compute_seconds_per_day=60.0)
    world.accounts.spent["default"] = 59.999
    before = await http.post(ROUTE, json=ask(0))
    world.clock.advance(1.0)
    world.accounts.spent["default"] = 61.5
    refused = await http.post(ROUTE, json=ask(1), headers={"Idempotency-Key": "late"})

    assert before.status_code == 202
    assert is_too_many(refused, "61.5", "compute_seconds_per_day is 60", "2026-12-01T00:00:00.000Z")
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    assert int(refused.headers["retry-after"]) == (midnight - NOW - timedelta(seconds=1)).total_seconds()
    assert len(world.jobs.rows) == 1
    assert not [key for key in world.jobs.keys if "late" in key]
    # What was admitted goes on, and is found.
    assert (await http.post(ROUTE, json=ask(0))).status_code == 200
    assert (await http.get(f"/v1/jobs/{before.json()['job_id']}")).status_code == 200


async def test_a_cap_of_nothing_admits_nothing(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", compute_seconds_per_day=0.0)

    assert is_too_many(await http.post(ROUTE, json=BODY), "compute_seconds_per_day is 0")


async def test_running_max_refuses_nothing(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", running_max=0)

    assert (await http.post(ROUTE, json=BODY)).status_code == 202


async def test_an_account_is_shown_the_limits_that_hold_for_it(
    make_world: Callable[..., World],
) -> None:
    plain = make_world().limits
    world = make_world(limits=plain.model_copy(update={"account_queued_max": 7}))
    world.accounts.allow("default", requests_per_second=50.0)
    async with world.client("jobs:read") as http:
        shown = (await http.get("/v1/limits")).json()

    assert shown["account_requests_per_second"] == 50.0
    assert shown["account_queued_max"] == 7
    assert shown["account_compute_seconds_per_day"] is None
    assert shown.keys() == plain.model_dump().keys()
