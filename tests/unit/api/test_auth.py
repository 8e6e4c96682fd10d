"""Keys, scopes and job tokens: who may do what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from tempa.core.accounts import digest, new_secret_key
from tempa.core.clock import rfc3339
from tempa.core.signing import sign_token
from tests.unit.api.conftest import BODY, LINK_KEY

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World

OPEN = {
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/.well-known/jwks.json",
    "/v1/artifacts/{job_id}/{name}",
    "/v1/payments/ingress/{source}",  # judged by the provider's own secret
}
SCOPES = {
    ("GET", "/v1/ledger"): "payments",
    ("GET", "/v1/rentals/quotes"): "payments",
    ("POST", "/v1/rentals/quotes"): "payments",
    ("GET", f"/v1/payments/{'1' * 64}"): "payments",
    ("GET", "/v1/jobs"): "jobs:read",
    ("GET", "/v1/events"): "jobs:read",
    ("GET", "/v1/scaling/cpu"): "jobs:read",
    ("POST", "/v1/models/generate"): "jobs:write",
    ("POST", "/v1/files"): "jobs:write",
    ("POST", "/v1/jobs/cad_00000000000000000000000000/cancel"): "jobs:write",
    ("POST", "/v1/jobs/cad_00000000000000000000000000/retry"): "jobs:write",
    ("DELETE", "/v1/jobs/cad_00000000000000000000000000"): "jobs:write",
    ("GET", "/v1/jobs/cad_00000000000000000000000000"): "jobs:read",
    ("GET", "/v1/jobs/cad_00000000000000000000000000/events"): "jobs:read",
    ("POST", "/v1/jobs/cad_00000000000000000000000000/token"): "jobs:read",
    ("GET", "/v1/webhooks/deliveries"): "webhooks",
    ("GET", "/v1/webhooks/dead-letters"): "webhooks",
    ("POST", "/v1/webhooks/dead-letters/redrive"): "webhooks",
    ("GET", "/v1/webhooks/endpoints"): "webhooks",
    ("POST", "/v1/webhooks/endpoints"): "webhooks",
    ("POST", "/v1/webhooks/endpoints/ep_00000000000000000000000000/rotate"): "webhooks",
    ("GET", "/v1/webhooks/stream"): "webhooks",
    ("POST", "/v1/webhooks/dead-letters/discard"): "webhooks",
    ("GET", "/v1/keys"): "admin",
    ("POST", "/v1/keys"): "admin",
    ("DELETE", "/v1/keys/key_00000000000000000000000000"): "admin",
}


def every_route(world: World) -> list[tuple[str, str]]:
    contexts = iter_route_contexts(world.app.routes)
    return [
        (method, context.path)
        for context in contexts
        if isinstance(context.original_route, APIRoute) and context.path
        for method in context.methods or ()
    ]


async def test_nothing_is_open_but_what_must_be(world: World) -> None:
    checked = 0
    async with world.bare_client() as http:
        for method, path in every_route(world):
            if path not in OPEN:
                answer = await http.request(method, path.replace("{", "").replace("}", ""))
                assert answer.status_code == 401, path
                assert answer.headers["www-authenticate"] == "Bearer"
                assert answer.json()["type"] == "urn:tempa:problem:malformed-key"
                checked += 1
    assert checked >= 20


@pytest.mark.parametrize(("method", "path"), SCOPES)
async def test_a_key_without_the_scope_is_told_which(world: World, method: str, path: str) -> None:
    needed = SCOPES[method, path]
    others = [scope for scope in ("jobs:read", "jobs:write", "webhooks", "payments") if scope != needed]
    async with world.client(*others) as http:
        answer = await http.request(method, path)
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:tempa:problem:missing-scope"
    assert answer.json()["scope"] == needed
    assert needed in answer.json()["detail"]


@pytest.mark.parametrize(
    "authorization",
    ["Bearer", "Bearer nonsense", "Basic dGVtcGE=", "Bearer tempa_sk_short", "", "tempa_sk_" + "a" * 43],
)
async def test_what_is_no_key_is_malformed(world: World, authorization: str) -> None:
    async with world.bare_client({"Authorization": authorization}) as http:
        answer = await http.get("/v1/limits")
    assert (answer.status_code, answer.json()["code"]) == (401, "MALFORMED_KEY")


async def test_two_keys_are_none(world: World) -> None:
    both = [("Authorization", f"Bearer {world.secret}")] * 2
    async with world.bare_client() as http:
        answer = await http.get("/v1/limits", headers=both)
    assert answer.json()["code"] == "MALFORMED_KEY"


async def test_a_key_nobody_made_is_unknown(world: World) -> None:
    async with world.bare_client({"Authorization": f"Bearer {new_secret_key()}"}) as http:
        answer = await http.get("/v1/limits")
    assert (answer.status_code, answer.json()["code"]) == (401, "UNKNOWN_KEY")


async def test_the_scheme_may_be_written_in_any_case(world: World) -> None:
    async with world.bare_client({"Authorization": f"bearer  {world.secret}"}) as http:
        assert (await http.get("/v1/limits")).status_code == 200


async def test_a_revoked_key_stops_at_once(world: World, http: httpx2.AsyncClient) -> None:
    secret = world.add_key("jobs:read")
    key_id = next(key.id for key in world.keys.rows.values() if key.digest == digest(secret))
    async with world.bare_client({"Authorization": f"Bearer {secret}"}) as other:
        assert (await other.get("/v1/limits")).status_code == 200
        assert (await http.delete(f"/v1/keys/{key_id}")).status_code == 204
        answer = await other.get("/v1/limits")
    assert (answer.status_code, answer.json()["code"]) == (401, "REVOKED_KEY")


async def test_a_look_up_that_a_revocation_overtakes_is_not_remembered(world: World) -> None:
    secret = world.add_key("jobs:read")
    key_id = next(key.id for key in world.keys.rows.values() if key.digest == digest(secret))
    ring = world.app.state.key_ring
    world.keys.hold = asyncio.Event()
    overtaken = asyncio.create_task(ring.identify(secret))
    await world.keys.reading.wait()
    await world.keys.revoke_key("default", key_id)
    ring.forget(key_id)
    world.keys.hold.set()
    await overtaken  # it had begun before
    async with world.bare_client({"Authorization": f"Bearer {secret}"}) as http:
        assert (await http.get("/v1/limits")).json()["code"] == "REVOKED_KEY"


async def test_keys_are_looked_up_once_in_five_seconds(world: World, http: httpx2.AsyncClient) -> None:
    for _ in range(3):
        await http.get("/v1/limits")
    assert world.keys.look_ups == 1
    world.clock.advance(5)
    await http.get("/v1/limits")
    assert world.keys.look_ups == 2


async def test_the_last_use_is_noted_once_a_minute(world: World, http: httpx2.AsyncClient) -> None:
    for _ in range(3):
        await http.get("/v1/limits")
        world.clock.advance(29.9)
    assert len(world.keys.touched) == 1
    await http.get("/v1/limits")
    assert len(world.keys.touched) == 2


async def test_a_token_reads_one_job_and_nothing_else(world: World, http: httpx2.AsyncClient) -> None:
    job, other = await world.a_job(), await world.a_job()
    made = await http.post(f"/v1/jobs/{job.id}/token")
    token = made.json()["token"]
    assert made.status_code == 200
    assert made.json()["expires_at"] == "2026-11-30T13:00:00.000Z"
    async with world.bare_client() as browser:
        assert (await browser.get(f"/v1/jobs/{job.id}?token={token}")).status_code == 200
        refused = await browser.get(f"/v1/jobs/{other.id}?token={token}")
        assert (refused.status_code, refused.json()["code"]) == (401, "INVALID_TOKEN")
        for method, path in (
            ("GET", "/v1/jobs"),
            ("POST", f"/v1/jobs/{job.id}/cancel"),
            ("GET", "/v1/events"),
        ):
            answer = await browser.request(method, f"{path}?token={token}")
            assert answer.status_code == 401, path


async def test_a_token_ends(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    token = (await http.post(f"/v1/jobs/{job.id}/token")).json()["token"]
    world.clock.advance(3600)
    async with world.bare_client() as browser:
        answer = await browser.get(f"/v1/jobs/{job.id}?token={token}")
    assert (answer.status_code, answer.json()["code"]) == (401, "INVALID_TOKEN")


async def test_a_forged_token_is_refused(world: World) -> None:
    job = await world.a_job()
    expires = int(world.clock.now().timestamp()) + 60
    genuine, forged = (sign_token(key, job.id, expires) for key in (LINK_KEY, b"x" * 32))
    async with world.bare_client() as browser:
        assert (await browser.get(f"/v1/jobs/{job.id}?token={genuine}")).status_code == 200
        for token in (forged, genuine[:-1], genuine.replace(str(expires), str(expires + 1)), ""):
            assert (await browser.get(f"/v1/jobs/{job.id}?token={token}")).status_code == 401


async def test_no_token_for_the_job_of_another(world: World) -> None:
    job = await world.a_job()
    async with world.client(account="other") as http:
        assert (await http.post(f"/v1/jobs/{job.id}/token")).status_code == 404


async def test_a_key_is_made_listed_without_its_secret_and_works(
    world: World, http: httpx2.AsyncClient
) -> None:
    made = await http.post("/v1/keys", json={"name": "CI", "scopes": ["jobs:write", "jobs:read"]})
    key = made.json()
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    assert key["created_at"] == rfc3339(world.clock.now())
    assert key["api_key"].startswith(key["hint"])
    async with world.bare_client({"Authorization": f"Bearer {key['api_key']}"}) as other:
        assert (await other.post("/v1/models/generate", json=BODY)).status_code == 202
    listed = await http.get("/v1/keys")
    assert key["api_key"] not in listed.text
    assert {one["name"]: one["scopes"] for one in listed.json()["items"]}["CI"] == ["jobs:write", "jobs:read"]
    assert world.keys.rows[key["id"]].digest == digest(key["api_key"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "", "scopes": ["admin"]},
        {"name": "x", "scopes": []},
        {"name": "x", "scopes": ["root"]},
        {"name": "x", "scopes": "admin"},
        {"name": "a\nb", "scopes": ["admin"]},
        {"name": "x", "scopes": ["admin"], "account": "other"},
    ],
)
async def test_a_key_that_says_too_little_or_too_much_is_422(
    world: World, http: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    answer = await http.post("/v1/keys", json=body)
    assert answer.status_code == 422
    assert answer.json()["errors"]


@pytest.mark.parametrize("key_id", ["key_00000000000000000000000000", "nonsense"])
async def test_a_key_that_is_not_there_cannot_be_revoked(http: httpx2.AsyncClient, key_id: str) -> None:
    assert (await http.delete(f"/v1/keys/{key_id}")).status_code == 404


async def test_a_key_of_another_account_cannot_be_revoked(world: World) -> None:
    key_id = next(iter(world.keys.rows))
    async with world.client(account="other") as http:
        assert (await http.delete(f"/v1/keys/{key_id}")).status_code == 404
    assert world.keys.rows[key_id].revoked_at is None
