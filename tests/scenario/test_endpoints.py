"""An endpoint from its registration to its removal, on a whole server; a receiver verifies all it gets."""

from __future__ import annotations

import base64
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from tempa.core.signing import hex_signature
from tempa.testing.seeds import SEED_001

if TYPE_CHECKING:
    import httpx2

    from tempa.testing.receiver import Received, Receiver
    from tempa.testing.server import Fleet, Server

PATH = "/v1/webhooks/endpoints"
POLLS_MAX = 2000
numbers = count(1)


def register(http: httpx2.Client, url: str, **asked: Any) -> dict[str, Any]:
    answer = http.post(PATH, json={"url": url, **asked})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def a_job(http: httpx2.Client, **asked: Any) -> str:
    """Another job of the same work: from the second on it is done without a kernel."""
    body = {**SEED_001, "tags": {"number": str(next(numbers))}, **asked}
    answer = http.post("/v1/models/generate", json=body)
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["job_id"]
    return job_id


def verifies(request: Received, secret: str) -> bool:
    """By the official library, on what came over the wire."""
    try:
        Webhook(secret).verify(request.body, dict(request.headers))
    except WebhookVerificationError:
        return False
    return True


def delivery_of(http: httpx2.Client, endpoint_id: str, job_id: str, *statuses: str) -> dict[str, Any]:
    """The delivery of a job to an endpoint, once it has one of these statuses."""
    conditions = {"endpoint_id": endpoint_id, "job_id": job_id}
    for _ in range(POLLS_MAX):
        found = http.get("/v1/webhooks/deliveries", params=conditions).json()["items"]
        if found and found[0]["status"] in statuses:
            delivery: dict[str, Any] = found[0]
            return delivery
    raise AssertionError(f"no delivery of {job_id} to {endpoint_id} became {statuses}")


def test_an_endpoint_of_a_jobs_own_url_is_another_and_each_signs_with_its_own(
    server: Server | Fleet, http: httpx2.Client, receiver: Receiver
) -> None:
    endpoint = register(http, receiver.url("/hook"))
    assert server.ready is not None
    account_secret = server.ready["webhook_secret"]
    job_id = a_job(http, webhook_url=receiver.url("/hook"))

    got = receiver.wait_for(2, 60, "/hook")

    by_secret = {
        secret: [request for request in got if verifies(request, secret)]
        for secret in (endpoint["secret"], account_secret)
    }
    for secret, (request,) in by_secret.items():
        assert request.headers["x-webhook-signature"] == hex_signature(secret, request.body)
        assert job_id.encode() in request.body
    assert len({request.headers["webhook-id"] for request in got}) == 1
    http.delete(f"{PATH}/{endpoint['id']}")


def test_while_a_secret_rotates_both_verify(http: httpx2.Client, receiver: Receiver) -> None:
    endpoint = register(http, receiver.url("/hook"))
    where = f"{PATH}/{endpoint['id']}"
    old = endpoint["secret"]
    new = http.post(f"{where}/rotate").json()["secret"]

    a_job(http)
    (request,) = receiver.wait_for(1, 60, "/hook")
    assert verifies(request, old)
    assert verifies(request, new)
    assert request.headers["x-webhook-signature"] == hex_signature(new, request.body)
    assert request.headers["x-webhook-signature-previous"] == hex_signature(old, request.body)

    newest = http.post(f"{where}/rotate", json={"overlap_seconds": 0}).json()["secret"]
    a_job(http)
    request = receiver.wait_for(2, 60, "/hook")[1]
    assert [verifies(request, secret) for secret in (old, new, newest)] == [False, False, True]
    assert "x-webhook-signature-previous" not in request.headers
    http.delete(where)


def test_a_paused_one_gets_what_came_meanwhile_when_it_is_resumed(
    http: httpx2.Client, receiver: Receiver
) -> None:
    endpoint = register(http, receiver.url("/hook"), events=["cad_generation.*"])
    where = f"{PATH}/{endpoint['id']}"
    http.post(f"{where}/pause")
    job_id = a_job(http)
    delivery_of(http, endpoint["id"], job_id, "parked")
    assert receiver.requests == []

    http.post(f"{where}/resume")

    started, completed = receiver.wait_for(2, 60, "/hook")
    assert b"cad_generation.started" in started.body
    assert b"cad_generation.completed" in completed.body
    assert verifies(completed, endpoint["secret"])
    http.delete(where)


def test_a_test_arrives_and_a_removed_one_hears_no_more(http: httpx2.Client, receiver: Receiver) -> None:
    endpoint = register(http, receiver.url("/hook"))
    where = f"{PATH}/{endpoint['id']}"
    sent = http.post(f"{where}/test")
    (request,) = receiver.wait_for(1, 60, "/hook")
    assert verifies(request, endpoint["secret"])
    assert request.headers["webhook-id"] == sent.json()["event_id"]

    http.post(f"{where}/pause")
    waiting = a_job(http)
    delivery_of(http, endpoint["id"], waiting, "parked")
    assert http.delete(where).status_code == 204
    delivery_of(http, endpoint["id"], waiting, "canceled")

    other = register(http, receiver.url("/other"))
    later = a_job(http)
    delivery_of(http, other["id"], later, "delivered")
    query = {"endpoint_id": endpoint["id"], "job_id": later}
    assert http.get("/v1/webhooks/deliveries", params=query).json()["items"] == []
    assert len([one for one in receiver.requests if one.path == "/hook"]) == 1
    http.delete(f"{PATH}/{other['id']}")


def test_ed25519_verifies_by_the_published_key(http: httpx2.Client, receiver: Receiver) -> None:
    endpoint = register(http, receiver.url("/hook"), signing="ed25519")
    a_job(http)
    (request,) = receiver.wait_for(1, 60, "/hook")
    (key,) = http.get("/.well-known/jwks.json", params={"endpoint": endpoint["id"]}).json()["keys"]

    version, _, signature = request.headers["webhook-signature"].partition(",")

    assert version == "v1a"
    headers = [request.headers[name].encode() for name in ("webhook-id", "webhook-timestamp")]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    public.verify(base64.b64decode(signature), b".".join([*headers, request.body]))
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature), b".".join([*headers, request.body + b" "]))
    assert "x-webhook-signature" not in request.headers
    http.delete(f"{PATH}/{endpoint['id']}")
