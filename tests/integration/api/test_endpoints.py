"""Registered endpoints over real HTTP, on the real store."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.accounts import ApiKey, digest, hint, new_secret_key
from tempa.core.ids import new_id
from tempa.core.signing import PUBLIC_KEY_PREFIX
from tempa.webhooks.fanout import FanOut
from tempa.webhooks.keyring import Keyring

if TYPE_CHECKING:
    import httpx2

    from tests.integration.api.conftest import Served

PATH = "/v1/webhooks/endpoints"
URL = "https://hooks.example.com/tempa"
KEYS = "/.well-known/jwks.json"
UNKNOWN = "ep_00000000000000000000000000"


async def registered(http: httpx2.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await http.post(PATH, json={"url": URL, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_secret_is_shown_once(http: httpx2.AsyncClient) -> None:
    answer = await http.post(PATH, json={"url": URL})
    made = answer.json()

    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert answer.headers["location"] == f"{PATH}/{made['id']}"
    assert len(base64.b64decode(made["secret"].removeprefix("whsec_"))) == 32
    assert made["id"] == made["endpoint_id"]
    seen = (await http.get(answer.headers["location"])).json()
    assert seen == {name: value for name, value in made.items() if name != "secret"}
    assert made["secret"] not in (await http.get(PATH)).text


async def test_what_a_new_one_is(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    assert made["status"] == "active"
    assert made["breaker"] == {
        "state": "closed",
        "failures_in_a_row": 0,
        "failed_probes": 0,
        "next_probe_at": None,
    }
    assert (made["parked_at"], made["held_until"], made["pending"]) == (None, None, 0)
    assert (made["events"], made["max_in_flight"], made["rate_per_second"]) == (None, 4, None)
    assert [secret["expires_at"] for secret in made["secrets"]] == [None]
    assert (made["signing"], made["public_key"]) == ("hmac", None)


async def test_all_that_is_wrong_is_told_at_once(http: httpx2.AsyncClient) -> None:
    answer = await http.post(
        PATH,
        json={
            "url": "https://10.0.0.1/",
            "events": ["job.completed", "job.exploded", "job.completed"],
            "description": "a\nb",
            "signing": "rsa",
            "retry_statuses": [404, 410, 500],
            "max_in_flight": 65,
            "rate_per_second": 0,
            "retries": 5,
        },
    )
    assert answer.status_code == 422
    assert answer.json()["code"] == "INVALID_REQUEST"
    assert {error["pointer"] for error in answer.json()["errors"]} == {
        "/url",
        "/events/1",
        "/description",
        "/signing",
        "/retry_statuses/1",
        "/retry_statuses/2",
        "/max_in_flight",
        "/rate_per_second",
        "/retries",
    }


@pytest.mark.parametrize(
    "body", [{}, {"url": None}, {"url": URL, "events": []}, {"url": URL, "max_in_flight": "4"}]
)
async def test_what_is_no_endpoint_is_refused(http: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    assert (await http.post(PATH, json=body)).status_code == 422


@pytest.mark.parametrize("url", ["https://127.0.0.1/", "http://example.com/", "https://[::ffff:a00:1]/"])
async def test_an_address_that_may_not_be_called_is_refused(http: httpx2.AsyncClient, url: str) -> None:
    made = await registered(http)
    for answer in (
        await http.post(PATH, json={"url": url}),
        await http.patch(f"{PATH}/{made['id']}", json={"url": url}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "ADDRESS_NOT_ALLOWED")
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/url"]


async def test_whole_numbers_may_be_written_as_floats(http: httpx2.AsyncClient) -> None:
    assert (await registered(http, max_in_flight=8.0))["max_in_flight"] == 8


async def test_an_account_has_a_limit(http: httpx2.AsyncClient, served: Served) -> None:
    limit = served.parts.limits.endpoints_per_account
    for _ in range(limit):
        await registered(http)
    answer = await http.post(PATH, json={"url": URL})
    assert (answer.status_code, answer.json()["errors"][0]["limit"]) == (422, limit)
    assert (await http.get("/v1/limits")).json()["endpoints_per_account"] == limit


async def test_pages_of_the_list(http: httpx2.AsyncClient) -> None:
    made = [(await registered(http))["id"] for _ in range(3)]
    first = (await http.get(PATH, params={"limit": 2})).json()
    rest = (await http.get(PATH, params={"limit": 2, "cursor": first["next_cursor"]})).json()
    assert [one["id"] for one in (*first["items"], *rest["items"])] == made[::-1]
    assert rest["next_cursor"] is None


async def test_only_what_is_given_changes(http: httpx2.AsyncClient) -> None:
    made = await registered(http, events=["job.failed"], rate_per_second=5, retry_statuses=[404])
    where = f"{PATH}/{made['id']}"

    changed = (await http.patch(where, json={"description": "night shift", "rate_per_second": None})).json()
    assert (changed["description"], changed["rate_per_second"]) == ("night shift", None)
    assert (changed["events"], changed["retry_statuses"], changed["url"]) == (["job.failed"], [404], URL)

    assert (await http.patch(where, json={"events": None})).json()["events"] is None
    assert (await http.patch(where, json={})).status_code == 200
    refused = await http.patch(where, json={"signing": "ed25519", "url": None})
    assert {error["pointer"] for error in refused.json()["errors"]} == {"/signing", "/url"}


async def test_a_rotation_keeps_the_older_secret_for_its_overlap(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    where = f"{PATH}/{made['id']}/rotate"

    answer = await http.post(where)
    rotated = answer.json()

    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert rotated["secret"] != made["secret"]
    newest, older = rotated["secrets"]
    assert newest["expires_at"] is None
    assert older["created_at"] == made["secrets"][0]["created_at"]
    assert older["expires_at"] is not None

    at_once = (await http.post(where, json={"overlap_seconds": 0})).json()
    assert len(at_once["secrets"]) == 1
    many = [(await http.post(where)).json() for _ in range(7)]
    assert len(many[-1]["secrets"]) == 5
    assert (await http.post(where, json={"overlap_seconds": 604_801})).status_code == 422


async def test_pause_and_resume(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    paused = (await http.post(f"{PATH}/{made['id']}/pause")).json()
    assert (paused["status"], paused["parked_at"] is None) == ("paused", False)
    resumed = (await http.post(f"{PATH}/{made['id']}/resume", json={})).json()
    assert (resumed["status"], resumed["parked_at"]) == ("active", None)
    assert (await http.post(f"{PATH}/{made['id']}/pause", json={"a": 1})).status_code == 422


async def test_a_test_is_a_delivery_that_can_be_looked_at(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    answer = await http.post(f"{PATH}/{made['id']}/test")
    assert answer.status_code == 202
    delivery = (await http.get(answer.headers["location"])).json()
    assert delivery["delivery_id"] == answer.json()["delivery_id"]
    assert (delivery["event_id"], delivery["type"]) == (answer.json()["event_id"], "webhook.test")
    assert (delivery["job_id"], delivery["endpoint_id"]) == (None, made["id"])
    assert (await http.get(f"{PATH}/{made['id']}")).json()["pending"] == 1


async def test_a_removed_one_is_gone_and_its_deliveries_are_canceled(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    sent = await http.post(f"{PATH}/{made['id']}/test")
    assert (await http.delete(f"{PATH}/{made['id']}")).status_code == 204
    assert (await http.delete(f"{PATH}/{made['id']}")).status_code == 404
    assert (await http.get(f"{PATH}/{made['id']}")).status_code == 404
    assert (await http.get(sent.headers["location"])).json()["status"] == "canceled"


async def test_what_is_not_the_accounts_is_not_found(http: httpx2.AsyncClient, served: Served) -> None:
    theirs = (await registered(http))["id"]
    secret = new_secret_key()
    key = ApiKey(
        id=new_id("key"),
        account="globex",
        name="theirs",
        hint=hint(secret),
        digest=digest(secret),
        scopes=("webhooks",),
        created_at=served.parts.clock.now(),
    )
    await served.store.add_key(key)
    other = served.client()
    other.headers["Authorization"] = f"Bearer {secret}"
    for endpoint_id in (theirs, UNKNOWN, "nonsense"):
        where = f"{PATH}/{endpoint_id}"
        answers = [
            await other.get(where),
            await other.patch(where, json={"description": "x"}),
            await other.delete(where),
            *[await other.post(f"{where}/{verb}") for verb in ("rotate", "test", "pause", "resume")],
        ]
        assert [answer.status_code for answer in answers] == [404] * 7
    assert (await other.get(PATH)).json()["items"] == []
    assert (await http.get(f"{PATH}/{theirs}")).json()["description"] == ""


async def test_ed25519_shows_the_public_key_alone(http: httpx2.AsyncClient, served: Served) -> None:
    made = await registered(http, signing="ed25519")
    assert made["secret"] == made["public_key"]
    assert made["secret"].startswith(PUBLIC_KEY_PREFIX)
    rotated = (await http.post(f"{PATH}/{made['id']}/rotate")).json()
    del http.headers["Authorization"]

    answer = await http.get("/.well-known/jwks.json", params={"endpoint": made["id"]})

    newest, older = answer.json()["keys"]
    assert (newest["kty"], newest["crv"]) == ("OKP", "Ed25519")
    for key, shown in ((newest, rotated), (older, made)):
        raw = base64.urlsafe_b64decode(key["x"] + "=")
        assert PUBLIC_KEY_PREFIX + base64.b64encode(raw).decode() == shown["public_key"]


async def test_a_public_key_has_one_id_of_its_own_for_ever(http: httpx2.AsyncClient) -> None:
    """However many rotations a second sees."""
    made = await registered(http, signing="ed25519")
    seen: dict[str, str] = {}
    for _ in range(5):
        for key in (await http.get(KEYS, params={"endpoint": made["id"]})).json()["keys"]:
            assert seen.setdefault(key["x"], key["kid"]) == key["kid"]
        await http.post(f"{PATH}/{made['id']}/rotate")

    assert len(set(seen.values())) == len(seen) == 5


async def test_keys_that_cannot_be_opened_are_no_empty_set(
    http: httpx2.AsyncClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verifier that kept an empty set for minutes would refuse what is right."""
    made = await registered(http, signing="ed25519")
    other = Keyring(b"o" * 32, lambda account: [])
    monkeypatch.setattr(
        served.app.state,
        "parts",
        replace(served.parts, endpoints=replace(served.parts.endpoints, keyring=other)),
    )

    answer = await http.get(KEYS, params={"endpoint": made["id"]})

    assert (answer.status_code, answer.json()["code"]) == (503, "KEYS_UNAVAILABLE")
    assert answer.headers["cache-control"] == "no-store"


async def test_a_jobs_url_is_told_from_nothing(http: httpx2.AsyncClient, served: Served) -> None:
    body = {"engine": "trial", "parameters": {"do": "finish"}, "webhook_url": URL, "cache": "bypass"}
    assert (await http.post("/v1/models/generate", json=body)).status_code == 202
    await served.fail(await served.claim(), "FILLET_FAILED")
    await FanOut(store=served.store, wake=served.parts.wake).drain()
    (delivery,) = (await http.get("/v1/webhooks/deliveries")).json()["items"]
    where = f"{PATH}/{delivery['endpoint_id']}"

    refused = [
        await http.patch(where, json={"description": "x"}),
        await http.delete(where),
        *[await http.post(f"{where}/{verb}") for verb in ("rotate", "test", "pause")],
    ]

    assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {(409, "CONFLICT")}
    assert "webhook_url" in refused[0].json()["detail"]
    assert (await http.get(where)).json()["pending"] == 1
    assert (await http.post(f"{where}/resume")).status_code == 200


async def test_other_endpoints_have_no_public_keys(http: httpx2.AsyncClient) -> None:
    made = await registered(http)
    for endpoint_id in (made["id"], UNKNOWN, "nonsense"):
        answer = await http.get("/.well-known/jwks.json", params={"endpoint": endpoint_id})
        assert answer.status_code == 404
    assert (await http.get("/.well-known/jwks.json")).status_code == 422
