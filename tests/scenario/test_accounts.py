"""Several accounts on one server: each sees its own, has its own limits, and is told when it meets one."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx2
import pytest
import standardwebhooks
from typer.testing import CliRunner

from tempa.cli.main import app
from tempa.core.accounts import new_secret_key
from tempa.testing.server import Fleet, wait_for_end, wait_for_start
from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tempa.testing.receiver import Receiver
    from tempa.testing.server import Server
    from tests.wirings import Wiring

ENVIRONMENT = {"PYTHONPATH": PLUGINS, "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "120"}
ROUTE = "/v1/models/generate"
LIMITS = {
    "plain": [],
    "other": [],
    "full": ["--queued-max", "3"],
    "narrow": ["--running-max", "1"],
    "capped": ["--compute-seconds-per-day", "0.001"],
    "hasty": ["--requests-per-second", "1"],
    "hooked": [],
}
UNKNOWN = "cad_00000000000000000000000000"

Http = dict[str, httpx2.Client]
Prepared = tuple["Server | Fleet", dict[str, dict[str, Any]], "Callable[..., dict[str, Any]]"]


def tempa(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """A command that speaks to the store itself."""
    result = CliRunner().invoke(app, list(arguments), env=environment)
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.fixture(scope="module")
def prepared(wiring: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """A server, a key of each account, and the command line on its store."""
    data = tmp_path_factory.mktemp("accounts") / "data"
    server = wiring.server(data, {**ENVIRONMENT, **wiring.slots(2)})
    environment = {"TEMPA_STORE__URL": server.store_url} if isinstance(server, Fleet) else {}

    def command(*arguments: str) -> dict[str, Any]:
        return tempa(environment, *arguments, "--data", str(data))

    keys = {}
    for account, limits in LIMITS.items():
        keys[account] = command(
            "keys", "create", "a key", "--account", account, "--scope", "jobs:write", "--scope", "jobs:read"
        )
        if limits:
            assert command("accounts", "set", account, *limits)["id"] == account
    with server as running:
        yield running, keys, command


@pytest.fixture(scope="module")
def accounts(prepared: Prepared) -> Iterator[Http]:
    """A client of each account."""
    server, keys, _ = prepared
    clients = {
        account: httpx2.Client(
            base_url=server.url,
            headers={"Authorization": f"Bearer {made['api_key']}"},
            timeout=60,
            trust_env=False,
        )
        for account, made in keys.items()
    }
    yield clients
    for client in clients.values():
        client.close()


def ask(do: str = "finish", **parameters: Any) -> dict[str, Any]:
    return {"engine": "trial", "parameters": {"do": do, **parameters}}


def waiting(tmp_path: Path, number: int = 0) -> dict[str, Any]:
    """A job whose kernel waits until somebody opens its pipe."""
    pipe = tmp_path / f"pipe-{number}"
    os.mkfifo(pipe)
    return ask("wait", path=str(pipe), n=number)


def let_go(tmp_path: Path, number: int = 0) -> None:
    (tmp_path / f"pipe-{number}").open("wb").close()


def spend(http: httpx2.Client, tmp_path: Path, number: int) -> None:
    """Let it go some milliseconds after its kernel began, which is when its pipe can be opened.

    Let go at once it may end within its first millisecond, and has then spent none.
    """
    with (tmp_path / f"pipe-{number}").open("wb"):
        until = time.monotonic() + 0.01
        while time.monotonic() < until:
            http.get("/v1/engines")


def post(http: httpx2.Client, body: dict[str, Any], **headers: str) -> httpx2.Response:
    return http.post(ROUTE, json=body, headers=headers)


def problem(answer: httpx2.Response, status: int, slug: str) -> dict[str, Any]:
    """The body of a refusal."""
    document: dict[str, Any] = answer.json()
    assert (answer.status_code, document["type"]) == (status, f"urn:tempa:problem:{slug}"), document
    return document


def test_of_many_requests_at_once_exactly_so_many_become_jobs(accounts: Http, tmp_path: Path) -> None:
    http = accounts["full"]
    bodies = [waiting(tmp_path, number) for number in range(40)]
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda body: post(http, body), bodies))
    tickets = [answer for answer in answers if answer.status_code == 202]
    refused = [answer for answer in answers if answer.status_code != 202]
    listed = http.get("/v1/jobs").json()["items"]

    assert len(tickets) == 3
    assert sorted(job["job_id"] for job in listed) == sorted(ticket.json()["job_id"] for ticket in tickets)
    for answer in refused:
        told = problem(answer, 429, "too-many-requests")
        assert "queued_max is 3" in told["detail"]
        assert "3 jobs" in told["detail"]
        assert int(answer.headers["Retry-After"]) > 0
    # The others are not touched by it.
    assert post(accounts["plain"], ask(n=1)).status_code == 202
    # A refused request has bound no key; when a job has ended there is room for one.
    late = post(http, ask(n=100), **{"Idempotency-Key": "late"})
    problem(late, 429, "too-many-requests")
    http.post(f"/v1/jobs/{tickets[0].json()['job_id']}/cancel")
    wait_for_end(http, tickets[0].json()["job_id"])
    assert post(http, ask(n=101), **{"Idempotency-Key": "late"}).status_code == 202
    for job in http.get("/v1/jobs", params={"limit": 10}).json()["items"]:
        http.post(f"/v1/jobs/{job['job_id']}/cancel")
        wait_for_end(http, job["job_id"])


def test_over_its_running_max_an_accounts_jobs_wait_and_are_not_refused(
    accounts: Http, tmp_path: Path
) -> None:
    http = accounts["narrow"]
    first = post(http, waiting(tmp_path, 0)).json()["job_id"]
    wait_for_start(http, first)
    second, third = (post(http, waiting(tmp_path, n)).json()["job_id"] for n in (1, 2))
    # Another account's job goes past them: there is a free slot.
    passed = wait_for_end(accounts["plain"], post(accounts["plain"], ask(n=2)).json()["job_id"])
    waits = [http.get(f"/v1/jobs/{job_id}").json() for job_id in (second, third)]
    let_go(tmp_path, 0)
    done = wait_for_end(http, first)
    started = wait_for_start(http, second)
    for job_id in (second, third):
        http.post(f"/v1/jobs/{job_id}/cancel")
        wait_for_end(http, job_id)

    assert passed["status"] == "completed"
    assert [job["status"] for job in waits] == ["queued", "queued"]
    assert [job["progress"]["queue_position"] for job in waits] == [0, 1]
    assert done["status"] == "completed"
    assert started["status"] == "processing"


def test_a_spent_day_refuses_new_jobs_and_ends_none(accounts: Http, tmp_path: Path) -> None:
    http = accounts["capped"]
    running = post(http, waiting(tmp_path, 0)).json()["job_id"]
    wait_for_start(http, running)
    spending = post(http, waiting(tmp_path, 1)).json()["job_id"]
    wait_for_start(http, spending)
    spend(http, tmp_path, 1)
    assert wait_for_end(http, spending)["compute_time_ms"] >= 1
    refused = until_refused(http)
    told = problem(refused, 429, "too-many-requests")
    still = http.get(f"/v1/jobs/{running}").json()
    replay = post(http, ask("wait", path=str(tmp_path / "pipe-0"), n=0))
    let_go(tmp_path, 0)

    assert "compute_seconds_per_day is 0.001" in told["detail"]
    until_midnight = 86_400 - datetime.now(UTC).timestamp() % 86_400
    assert abs(int(refused.headers["Retry-After"]) - until_midnight) < 60
    assert still["status"] == "processing"
    assert (replay.status_code, replay.json()["job_id"]) == (200, running)
    assert wait_for_end(http, running)["status"] == "completed"


def until_refused(http: httpx2.Client) -> httpx2.Response:
    """What was spent is known at the door a second later at the latest: until then jobs get in."""
    deadline = time.monotonic() + 30
    number = 0
    while (answer := post(http, ask(n=number, do="finish"))).status_code == 202:
        number += 1
        wait_for_end(http, answer.json()["job_id"])
        assert time.monotonic() < deadline, "the cap never held"
    return answer


def test_who_calls_too_often_is_told_when_to_come_back(accounts: Http) -> None:
    http = accounts["hasty"]
    began = time.monotonic()
    answers = [http.get("/v1/engines") for _ in range(40)]
    took = time.monotonic() - began
    let_in = [answer for answer in answers if answer.status_code == 200]
    refused = [answer for answer in answers if answer.status_code != 200]

    assert 10 <= len(let_in) <= 11 + took
    for answer in refused:
        assert "requests_per_second" in problem(answer, 429, "too-many-requests")["detail"]
        assert answer.headers["Retry-After"] == "1"
    assert http.get("/livez").status_code == 200
    assert accounts["plain"].get("/v1/engines").status_code == 200


def test_a_job_that_waits_is_told_how_long_by_what_others_took(accounts: Http, tmp_path: Path) -> None:
    http = accounts["plain"]
    wait_for_end(http, post(http, {**ask(n=3), "cache": "bypass"}).json()["job_id"])
    running = post(http, waiting(tmp_path)).json()["job_id"]
    wait_for_start(http, running)
    progress = http.get(f"/v1/jobs/{running}").json()["progress"]
    low, high = progress["eta_range_seconds"]
    let_go(tmp_path)
    ended = wait_for_end(http, running)["progress"]

    assert 0 <= low <= progress["eta_seconds"] <= high
    assert (ended["eta_seconds"], ended["eta_range_seconds"]) == (None, None)


def test_nothing_of_one_account_is_there_for_another(accounts: Http) -> None:
    owner, stranger = accounts["plain"], accounts["other"]
    job_id = post(owner, ask(n=4), **{"Idempotency-Key": "shared"}).json()["job_id"]
    wait_for_end(owner, job_id)
    calls = [
        ("GET", ""),
        ("GET", "/events"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("POST", "/token"),
        ("DELETE", ""),
    ]
    for wanted in (job_id, UNKNOWN, "no-id", "cad_../../etc"):
        for method, path in calls:
            answer = stranger.request(method, f"/v1/jobs/{wanted}{path}")
            problem(answer, 404, "not-found")
    # Nor do the two share keys, lists or feeds.
    assert post(stranger, ask(n=5), **{"Idempotency-Key": "shared"}).status_code == 202
    assert job_id not in stranger.get("/v1/jobs").text
    assert job_id not in stranger.get("/v1/events").text
    assert owner.get(f"/v1/jobs/{job_id}").status_code == 200


@pytest.mark.parametrize("query", ["wait=31", "wait=-1", "wait=soon", "wait=1e999", "wait=", "wait=1&wait=2"])
def test_a_wait_that_is_none_is_422(accounts: Http, query: str) -> None:
    answer = accounts["plain"].get(f"/v1/jobs/{UNKNOWN}?{query}")
    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == "/wait"


@pytest.mark.parametrize("seen", ["x", "-1", "1.5", "0x1", "9" * 19, "1, 2"])
def test_a_last_event_id_that_is_none_is_422(accounts: Http, seen: str) -> None:
    answer = accounts["plain"].get(f"/v1/jobs/{UNKNOWN}/events", headers={"Last-Event-ID": seen})
    assert "Last-Event-ID" in problem(answer, 422, "invalid-request")["detail"]


@pytest.mark.parametrize("cursor", ["", "x", "%2e%2e", "AAAA", UNKNOWN, "Y2FkXzA", "a" * 90, "1'--"])
def test_a_cursor_that_we_did_not_write_is_422(accounts: Http, cursor: str) -> None:
    answer = accounts["plain"].get(f"/v1/jobs?cursor={cursor}")
    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == "/cursor"


@pytest.mark.parametrize("position", ["", "-1", "x", "1e3", "9" * 19])
def test_a_position_that_is_none_is_422(accounts: Http, position: str) -> None:
    answer = accounts["plain"].get(f"/v1/events?after={position}")
    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == "/after"


def newest(http: httpx2.Client) -> list[str]:
    """By id: the links of the same job name another second in the next one."""
    items = http.get("/v1/jobs", params={"limit": 1}).json()["items"]
    return [item["job_id"] for item in items]


@pytest.mark.parametrize("priority", [10, -1, 5.5, "5", True, None, [], 1e300])
def test_a_priority_that_is_none_is_422_and_leaves_no_job(accounts: Http, priority: Any) -> None:
    http = accounts["other"]
    before = newest(http)
    answer = post(http, {**ask(n=6), "priority": priority})

    assert problem(answer, 422, "invalid-request")["errors"][0]["pointer"] == "/priority"
    assert newest(http) == before


def test_a_page_goes_on_where_the_one_before_ended(accounts: Http) -> None:
    http = accounts["other"]
    made = [post(http, ask(n=number)).json()["job_id"] for number in range(20, 25)]
    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        page = http.get("/v1/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [job["job_id"] for job in page["items"]]
        cursor = page["next_cursor"]
    # A cursor of somebody else's leads to nothing, and tells nothing.
    theirs = accounts["plain"].get("/v1/jobs", params={"limit": 1}).json()["next_cursor"]

    assert [job_id for job_id in seen if job_id in made] == made[::-1]
    assert len(seen) == len(set(seen))
    assert http.get("/v1/jobs", params={"cursor": theirs}).json()["items"] == []


def test_a_key_is_refused_for_what_is_wrong_with_it(prepared: Prepared, accounts: Http) -> None:
    server, _, _ = prepared
    with server.http() as admin:
        made = admin.post("/v1/keys", json={"name": "short-lived", "scopes": ["jobs:read"]}).json()
        bearer = {"Authorization": f"Bearer {made['api_key']}"}
        assert admin.get("/v1/jobs", headers=bearer).status_code == 200
        problem(admin.get("/v1/keys", headers=bearer), 403, "missing-scope")
        used = {key["id"]: key["last_used_at"] for key in admin.get("/v1/keys").json()["items"]}
        assert admin.delete(f"/v1/keys/{made['id']}").status_code == 204
        problem(admin.get("/v1/jobs", headers=bearer), 401, "revoked-key")
        # Keys of another account are not there.
        for key_id in (UNKNOWN.replace("cad", "key"), "no-id"):
            problem(admin.delete(f"/v1/keys/{key_id}"), 404, "not-found")
        unknown = {"Authorization": f"Bearer {new_secret_key()}"}
        problem(admin.get("/v1/jobs", headers=unknown), 401, "unknown-key")
        malformed = {"Authorization": "Bearer not-a-key"}
        problem(admin.get("/v1/jobs", headers=malformed), 401, "malformed-key")

    assert used[made["id"]] is not None
    problem(accounts["plain"].get("/v1/keys"), 403, "missing-scope")


def test_no_secret_of_a_key_is_in_the_store_but_its_hash(prepared: Prepared) -> None:
    """Looked for in every byte of the file and its write-ahead log, or in every row."""
    server, keys, _ = prepared
    secret = keys["plain"]["api_key"]
    if isinstance(server, Fleet):
        stored = asyncio.run(_rows(server.store_url)).encode()
    else:
        stored = b"".join(path.read_bytes() for path in server.data_dir.glob("tempa.db*"))

    assert hashlib.sha256(secret.encode()).hexdigest().encode() in stored
    assert secret.encode() not in stored


async def _rows(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("select api_key::text from api_key")
    finally:
        await connection.close()
    return "\n".join(row[0] for row in rows)


def test_an_accounts_webhooks_are_signed_with_its_own_secret(
    prepared: Prepared, accounts: Http, receiver: Receiver
) -> None:
    server, keys, _ = prepared
    body = {**ask(n=7), "webhook_url": receiver.url("/hook")}
    job_id = post(accounts["hooked"], body).json()["job_id"]
    (got,) = receiver.wait_for(1, 30)
    event = standardwebhooks.Webhook(keys["hooked"]["webhook_secret"]).verify(got.body, dict(got.headers))

    assert event["data"]["job_id"] == job_id
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        standardwebhooks.Webhook(server.secret).verify(got.body, dict(got.headers))
