"""A receiver that has a bad moment gets its webhook all the same, and all of it is on record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.seeds import SEED_001

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from tempa.testing.receiver import Receiver
    from tempa.testing.server import Fleet, Server
    from tests.wirings import Wiring

POLLS_MAX = 2000


@pytest.fixture(scope="module")
def server(wiring: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server | Fleet]:
    hurry = {"TEMPA_WEBHOOKS__BACKOFF_BASE_SECONDS": "0.1"}
    with wiring.server(tmp_path_factory.mktemp("tempa") / "data", hurry) as running:
        yield running


def test_three_attempts_under_one_id_and_then_it_is_delivered(
    http: httpx2.Client, receiver: Receiver
) -> None:
    receiver.script("/hook", "/status/503", "/status/500", "/ok")
    job_id = http.post("/v1/models/generate", json=_asking(receiver.url("/hook"))).json()["job_id"]

    got = receiver.wait_for(3, 30, "/hook")

    assert len({request.headers["webhook-id"] for request in got}) == 1
    delivery = _ended(http, job_id)
    assert delivery["status"] == "delivered"
    assert [attempt["http_status"] for attempt in delivery["attempts"]] == [503, 500, 200]
    assert [attempt["outcome"] for attempt in delivery["attempts"]] == ["retry", "retry", "delivered"]
    assert len(receiver.requests) == 3


def test_a_redirect_is_a_failed_attempt_and_is_not_followed(http: httpx2.Client, receiver: Receiver) -> None:
    receiver.script("/hook", "/redirect/302", "/ok")
    job_id = http.post("/v1/models/generate", json=_asking(receiver.url("/hook"))).json()["job_id"]

    receiver.wait_for(2, 30, "/hook")

    delivery = _ended(http, job_id)
    assert [attempt["http_status"] for attempt in delivery["attempts"]] == [302, 200]
    assert [request.path for request in receiver.requests] == ["/hook", "/hook"]


def _asking(url: str) -> dict[str, Any]:
    return {**SEED_001, "webhook_url": url}


def _ended(http: httpx2.Client, job_id: str) -> dict[str, Any]:
    """The job's one delivery with its attempts, once it is finished: its last answer is being written."""
    for _ in range(POLLS_MAX):
        (listed,) = http.get("/v1/webhooks/deliveries", params={"job_id": job_id}).json()["items"]
        if listed["finished_at"]:
            found: dict[str, Any] = http.get(f"/v1/webhooks/deliveries/{listed['delivery_id']}").json()
            return found
    raise AssertionError(f"the delivery of {job_id} did not end")
