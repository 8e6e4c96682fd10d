"""The whole way of one part: POST, ticket, kernel, files, event log, verified webhook."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import standardwebhooks

import tempa.webhooks
from tempa.testing.seeds import SEED_001
from tempa.testing.server import wait_for_end

if TYPE_CHECKING:
    import httpx2

    from tempa.testing.receiver import Receiver
    from tempa.testing.server import Fleet, Server

R, r, F, L, N, D = 120.5 / 2, 45.0 / 2, 2.5, 300.0, 6, 10.0
_CORNER = F**2 * (1 - math.pi / 4)  # what a fillet takes from a square corner
_CENTROID = R - F + F / (6 * (1 - math.pi / 4))  # Pappus: the radius of that corner's centroid
CLOSED_FORM = math.pi * (R**2 - r**2 - N * (D / 2) ** 2) * L - 2 * 2 * math.pi * _CENTROID * _CORNER


def test_the_body_of_the_source_recipe_works_as_it_stands_with_plain_curl(server: Server | Fleet) -> None:
    assert server.ready
    answer = subprocess.run(
        ["curl", "-sS", "-i", f"{server.url}/v1/models/generate",
         "-H", f"Authorization: Bearer {server.ready['api_key']}", "-H", "Content-Type: application/json",
         "-H", "Idempotency-Key: by-curl", "-d", json.dumps(SEED_001)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    head, _, body = answer.partition("\n\n") if "\r\n\r\n" not in answer else answer.partition("\r\n\r\n")
    ticket = json.loads(body)
    assert " 202 " in head.splitlines()[0]
    assert f"location: /v1/jobs/{ticket['job_id']}" in head.lower()
    assert "retry-after:" in head.lower()
    assert ticket.keys() == {"job_id", "status", "created_at"}
    assert ticket["status"] == "queued"


def test_the_part_is_right_and_its_file_is_what_the_job_says(http: httpx2.Client) -> None:
    job = wait_for_end(http, http.post("/v1/models/generate", json=SEED_001).json()["job_id"])
    result = job["result"]
    assert job["status"] == "completed", job["error"]
    assert abs(result["measurements"]["volume"] / CLOSED_FORM - 1) < 1e-9
    assert (result["file_format"], result["measurements"]["solids"]) == ("step", 1)
    (artifact,) = result["artifacts"]
    file = http.get(artifact["download_url"], headers={"Authorization": ""})
    assert file.content.startswith(b"ISO-10303-21;")
    assert hashlib.sha256(file.content).hexdigest() == artifact["sha256"]
    assert len(file.content) == artifact["file_size_bytes"] == result["file_size_bytes"]
    assert file.headers["etag"] == f'"{artifact["sha256"]}"'


def test_all_five_formats_are_the_same_bytes_each_time(http: httpx2.Client) -> None:
    body = {**SEED_001, "export_formats": ["step", "brep", "stl", "glb", "3mf"]}
    del body["export_format"]
    runs = []
    for key in ("once", "again"):
        headers = {"Idempotency-Key": f"formats-{key}"}
        asked = http.post("/v1/models/generate", json={**body, "cache": "bypass"}, headers=headers)
        job = wait_for_end(http, asked.json()["job_id"])
        runs.append({a["role"]: a["sha256"] for a in job["result"]["artifacts"]})
    assert runs[0] == runs[1]
    assert runs[0].keys() == {"step", "brep", "stl", "glb", "3mf"}


def test_the_webhook_verifies_with_the_official_library_and_by_plain_hmac(
    server: Server | Fleet, http: httpx2.Client, receiver: Receiver
) -> None:
    body = {**SEED_001, "webhook_url": receiver.url("/hook"), "tags": {"order": "øre-7"}}
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    job_id = http.post("/v1/models/generate", json=body, headers={"traceparent": trace}).json()["job_id"]
    (got,) = receiver.wait_for(1, 30)
    event: dict[str, Any] = standardwebhooks.Webhook(server.secret).verify(got.body, dict(got.headers))
    expected = hmac.new(server.secret.encode(), got.body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(got.headers["x-webhook-signature"], expected)
    assert tempa.webhooks.verify(got.body, got.headers, server.secret) == event
    assert (event["event"], event["type"]) == ("cad_generation.completed",) * 2
    assert got.headers["webhook-id"] == event["id"]
    assert got.headers["traceparent"] == trace
    assert got.headers["user-agent"].startswith("Tempa/")
    assert (event["data"]["job_id"], event["data"]["status"]) == (job_id, "completed")
    assert event["data"]["tags"] == {"order": "øre-7"}
    file = http.get(event["data"]["artifacts"]["step"], headers={"Authorization": ""})
    assert file.content.startswith(b"ISO-10303-21;")


def test_the_same_post_from_64_threads_makes_one_job_and_runs_the_kernel_once(
    http: httpx2.Client, server: Server | Fleet
) -> None:
    body = {**SEED_001, "cache": "bypass", "tags": {"story": "64 threads"}}
    before = _kernel_runs(server)
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda _: http.post("/v1/models/generate", json=body), range(64)))
    assert sorted(answer.status_code for answer in answers) == [200] * 63 + [202]
    assert len({answer.json()["job_id"] for answer in answers}) == 1
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 63
    wait_for_end(http, answers[0].json()["job_id"])
    assert _kernel_runs(server) == before + 1


def test_the_event_log_has_no_gaps_and_resumes_where_a_reader_left(http: httpx2.Client) -> None:
    job_id = http.post("/v1/models/generate", json={**SEED_001, "tags": {"story": "log"}}).json()["job_id"]
    wait_for_end(http, job_id)
    events = _read_stream(http, job_id, {})
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events][:2] == ["job.queued", "job.started"]
    assert events[-1]["type"] == "job.completed"
    assert _read_stream(http, job_id, {"Last-Event-ID": "2"}) == events[2:]


def test_the_accounts_feed_holds_every_event_once_in_growing_positions(http: httpx2.Client) -> None:
    job_id = http.post("/v1/models/generate", json={**SEED_001, "tags": {"story": "feed"}}).json()["job_id"]
    wait_for_end(http, job_id)
    after = "0"
    seen: list[dict[str, Any]] = []
    while not any(e["job_id"] == job_id and e["type"] == "job.completed" for e in seen):
        page = http.get("/v1/events", params={"after": after, "limit": 50, "wait": 10}).json()
        seen += page["items"]
        after = page["next_cursor"] or after
    positions = [event["position"] for event in seen]
    assert positions == sorted(set(positions))


def _read_stream(http: httpx2.Client, job_id: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    text = http.get(f"/v1/jobs/{job_id}/events", headers=headers).text
    blocks = [block for block in text.split("\n\n") if block.startswith(("event: job.", "id:"))]
    return [
        json.loads(line[6:]) for block in blocks for line in block.splitlines() if line.startswith("data: ")
    ]


def _kernel_runs(server: Server | Fleet) -> float:
    lines = server.metrics().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("tempa_engine_runs_total{"))
