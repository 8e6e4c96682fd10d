"""Three processes deliver from one database: an endpoint's limits hold over all, and nothing comes twice."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from standardwebhooks import Webhook

from tempa.testing.server import Server
from tests.services import fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

    from tempa.testing.postgres import PostgresCluster
    from tempa.testing.receiver import Receiver

PATH = "/v1/webhooks/endpoints"
ROLES = ("api,deliverer,rescuer,janitor", "deliverer", "deliverer")
COUNT = 40
PATIENCE_SECONDS = 60.0


@pytest.fixture(scope="module")
def servers(
    cluster: PostgresCluster, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Server]]:
    folder = tmp_path_factory.mktemp("tempa")
    environment = {"TEMPA_STORE__URL": fresh_database(cluster, template)}
    with ExitStack() as stack:
        made = [_process(folder, environment, number, roles) for number, roles in enumerate(ROLES)]
        made[0].start()  # the others read the credentials it writes
        for one in made[1:]:
            one.spawn()
        for one in made[1:]:
            one.wait_until_ready()
        yield [stack.enter_context(one) for one in made]
        assert [one.stop() for one in made] == [0, 0, 0]


def _process(folder: Path, environment: dict[str, str], number: int, roles: str) -> Server:
    name = folder / f"deliverer-{number}"
    command = ("serve", "--roles", roles, "--port", "0")
    return Server(folder / "data", environment, name.with_suffix(".log"), command, name.with_suffix(".json"))


@pytest.fixture
def http(servers: list[Server]) -> Iterator[httpx2.Client]:
    with servers[0].http() as client:
        yield client


def register(http: httpx2.Client, url: str, **asked: Any) -> dict[str, Any]:
    answer = http.post(PATH, json={"url": url, **asked})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def send(http: httpx2.Client, endpoint: dict[str, Any], count: int) -> set[str]:
    """So many events to the endpoint; their ids."""
    asked = [http.post(f"{PATH}/{endpoint['id']}/test") for _ in range(count)]
    assert {answer.status_code for answer in asked} == {202}
    return {answer.json()["event_id"] for answer in asked}


def deliveries(http: httpx2.Client, endpoint: dict[str, Any], status: str) -> list[dict[str, Any]]:
    conditions = {"endpoint_id": endpoint["id"], "status": status, "limit": 200}
    items: list[dict[str, Any]] = http.get("/v1/webhooks/deliveries", params=conditions).json()["items"]
    return items


def wait_until_delivered(http: httpx2.Client, endpoint: dict[str, Any], count: int) -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := deliveries(http, endpoint, "delivered")) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} were delivered"
    return found


def test_two_at_a_time_over_all_and_each_comes_once(
    servers: list[Server], http: httpx2.Client, receiver: Receiver
) -> None:
    receiver.script("/hook", "/hold", "/hold", "/ok")
    endpoint = register(http, receiver.url("/hook"), max_in_flight=2)
    sent = send(http, endpoint, COUNT)
    receiver.wait_for(2, PATIENCE_SECONDS)
    more = send(http, endpoint, COUNT)  # rings all three; and each looks by itself once a second
    assert (len(deliveries(http, endpoint, "leased")), len(receiver.requests)) == (2, 2)

    receiver.release()

    found = wait_until_delivered(http, endpoint, 2 * COUNT)
    assert {one["attempt_count"] for one in found} == {1}
    ids = [request.headers["webhook-id"] for request in receiver.requests]
    assert len(ids) == 2 * COUNT
    assert set(ids) == sent | more
    for request in receiver.requests:
        Webhook(endpoint["secret"]).verify(request.body, dict(request.headers))
    http.delete(f"{PATH}/{endpoint['id']}")


def test_a_rate_holds_over_all(http: httpx2.Client, receiver: Receiver) -> None:
    rate, in_flight = 20, 4
    endpoint = register(http, receiver.url("/hook"), rate_per_second=rate, max_in_flight=in_flight)
    send(http, endpoint, COUNT)
    wait_until_delivered(http, endpoint, COUNT)

    arrived = sorted(request.at_seconds for request in receiver.requests)
    most = max(sum(start <= at < start + 0.5 for at in arrived) for start in arrived)
    assert most <= 0.5 * rate + 2 + in_flight  # one for the edge, one for a late claim, those on their way
    assert len(arrived) == COUNT
    http.delete(f"{PATH}/{endpoint['id']}")
