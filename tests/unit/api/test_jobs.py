"""Looking at jobs, listing them, and what a client may do to them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tempa.jobs.model import JobError, JobFilter, Status, Usage
from tempa.jobs.wire import JobView
from tests.unit.api.conftest import NOW

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World


async def test_a_queued_job(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}")
    assert answer.status_code == 200
    assert answer.headers["etag"] == 'W/"1"'
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["cache-control"] == "private, no-cache"
    view = answer.json()
    assert view["status"] == "queued"
    assert view["result"] is None
    assert view["error"] is None
    assert view["completed_at"] is None
    assert view["progress"] == {
        "stage": "queued",
        "fraction": None,
        "queue_position": world.jobs.positions,
        "eta_seconds": None,
        "eta_range_seconds": None,
        "preview_url": None,
    }


async def test_a_completed_job_links_to_its_files(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job(), b"solid")
    answer = await http.get(f"/v1/jobs/{job.id}")
    view = answer.json()
    JobView.model_validate_json(answer.content, strict=True)
    (artifact,) = view["result"]["artifacts"]
    assert "retry-after" not in answer.headers
    assert view["status"] == "completed"
    assert view["completed_at"] == "2026-11-30T12:00:02.000Z"
    assert view["result"]["file_size_bytes"] == 5
    assert view["result"]["expires_at"] == "2026-11-30T13:00:00.000Z"
    assert artifact["download_url"] == view["result"]["download_url"]
    async with world.bare_client() as anyone:
        assert (await anyone.get(artifact["download_url"])).content == b"solid"


async def test_a_failed_job_says_why(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    error = JobError(code="KERNEL_TIMEOUT", message="Too slow.", retryable=False, hint="Simplify.")
    world.jobs.tell(job.id, "job.failed", error=error, completed_at=NOW, usage=Usage(compute_time_ms=9))
    view = (await http.get(f"/v1/jobs/{job.id}")).json()
    assert (view["status"], view["result"], view["compute_time_ms"]) == ("failed", None, 9)
    assert view["error"] == {
        "code": "KERNEL_TIMEOUT",
        "message": "Too slow.",
        "retryable": False,
        "hint": "Simplify.",
        "detail": {},
    }


@pytest.mark.parametrize("tags", ['W/"1"', '"1"', 'W/"7", W/"1"', "*", '"x","1"'])
async def test_nothing_new_is_304(world: World, http: httpx2.AsyncClient, tags: str) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}", headers={"If-None-Match": tags})
    assert answer.status_code == 304
    assert answer.content == b""
    assert answer.headers["etag"] == 'W/"1"'
    assert answer.headers["retry-after"] == "1"


@pytest.mark.parametrize("tags", ['W/"2"', "1", "", '"11"', 'W/"'])
async def test_another_etag_is_200(world: World, http: httpx2.AsyncClient, tags: str) -> None:
    job = await world.a_job()
    answer = await http.get(f"/v1/jobs/{job.id}", headers={"If-None-Match": tags})
    assert answer.status_code == 200


async def test_links_are_new_each_time_and_the_etag_is_not(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    first = await http.get(f"/v1/jobs/{job.id}")
    world.clock.advance(10)
    second = await http.get(f"/v1/jobs/{job.id}")
    assert first.headers["etag"] == second.headers["etag"] == 'W/"3"'
    assert first.json()["result"]["download_url"] != second.json()["result"]["download_url"]


@pytest.mark.parametrize(("age", "seconds"), [(0, "1"), (45, "4"), (3600, "10")])
async def test_older_jobs_are_asked_for_less_often(
    world: World, http: httpx2.AsyncClient, age: float, seconds: str
) -> None:
    job = await world.a_job()
    world.clock.advance(age)
    assert (await http.get(f"/v1/jobs/{job.id}")).headers["retry-after"] == seconds


@pytest.mark.parametrize(
    "job_id", ["cad_00000000000000000000000000", "nonsense", "%00", "cad_", "..%2f..", "ä"]
)
@pytest.mark.parametrize(
    ("method", "rest"), [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/events")]
)
async def test_what_is_not_there_is_404(
    http: httpx2.AsyncClient, job_id: str, method: str, rest: str
) -> None:
    answer = await http.request(method, f"/v1/jobs/{job_id}{rest}")
    assert answer.status_code == 404
    assert answer.json()["type"] == "urn:tempa:problem:not-found"


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("GET", "/events"),
        ("POST", "/token"),
    ],
)
async def test_the_job_of_another_account_is_404(world: World, method: str, rest: str) -> None:
    job = await world.finish(await world.a_job())
    async with world.client(account="other") as http:
        answer = await http.request(method, f"/v1/jobs/{job.id}{rest}")
    assert answer.status_code == 404


async def _every_call(http: httpx2.AsyncClient, job_id: str) -> list[httpx2.Response]:
    """All that can be asked about a job by its id."""
    url = f"/v1/jobs/{job_id}"
    looks = [await http.get(url), await http.get(f"{url}/events")]
    deeds = [await http.post(f"{url}/{deed}") for deed in ("cancel", "retry", "token")]
    return [*looks, *deeds, await http.delete(url)]


async def test_after_its_retention_a_job_is_gone(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    world.clock.advance(30 * 86_400 - 1)
    assert (await http.get(f"/v1/jobs/{job.id}")).status_code == 200
    world.clock.advance(1)
    for answer in await _every_call(http, job.id):
        assert answer.status_code == 410
        assert answer.json()["type"] == "urn:tempa:problem:gone"


async def test_a_job_whose_row_is_gone_too_is_gone_to_its_account(
    world: World, http: httpx2.AsyncClient
) -> None:
    job = await world.finish(await world.a_job())
    del world.jobs.rows[job.id]
    world.jobs.gone[job.account, job.id] = world.clock.now()
    for answer in await _every_call(http, job.id):
        assert answer.status_code == 410
        assert answer.json()["type"] == "urn:tempa:problem:gone"
    async with world.client(account="other") as theirs:
        assert (await theirs.get(f"/v1/jobs/{job.id}")).status_code == 404


async def test_a_job_that_has_not_ended_is_never_gone(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    world.clock.advance(31 * 86_400)
    assert (await http.get(f"/v1/jobs/{job.id}")).status_code == 200


async def test_a_list_is_read_page_by_page(world: World, http: httpx2.AsyncClient) -> None:
    made = [(await world.a_job()).id for _ in range(5)]
    await world.a_job(account="other")
    seen: list[str] = []
    cursor: str | None = ""
    pages = 0
    while cursor is not None:
        query = f"&cursor={cursor}" if cursor else ""
        page = (await http.get(f"/v1/jobs?limit=2{query}")).json()
        seen += [job["job_id"] for job in page["items"]]
        cursor = page["next_cursor"]
        pages += 1
    assert seen == made[::-1]
    assert pages == 3


async def test_a_full_last_page_is_the_last(world: World, http: httpx2.AsyncClient) -> None:
    for _ in range(2):
        await world.a_job()
    assert (await http.get("/v1/jobs?limit=2")).json()["next_cursor"] is None


async def test_filters_reach_the_store(world: World, http: httpx2.AsyncClient) -> None:
    query = "status=failed&engine=occt&tag=part:a:b&code=KERNEL_TIMEOUT&since=2026-11-30T13:00:00.5%2b01:00"
    assert (await http.get(f"/v1/jobs?{query}")).status_code == 200
    assert world.jobs.asked == [
        JobFilter(
            status=Status.FAILED,
            engine="occt",
            tag="part:a:b",
            code="KERNEL_TIMEOUT",
            since=datetime(2026, 11, 30, 12, 0, 0, 500_000, tzinfo=UTC),
        )
    ]


async def test_all_that_is_wrong_with_a_query_is_told_at_once(http: httpx2.AsyncClient) -> None:
    query = "status=done&engine=%00&tag=x&code=OOPS&since=yesterday&limit=0&cursor=%2e"
    answer = await http.get(f"/v1/jobs?{query}")
    assert answer.status_code == 422
    pointers = [fault["pointer"] for fault in answer.json()["errors"]]
    assert pointers == ["/status", "/engine", "/tag", "/code", "/since", "/limit", "/cursor"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=201",
        "limit=1.5",
        "limit=-1",
        "limit=1e1",
        "limit=",
        "limit=٣",
        "limit=99999999999999999999999",
        "limit=5&limit=6",
        "cursor=",
        "cursor=AAAA",
        "cursor=Y2FkXzA",
        "since=2026-11-30",
        "since=2026-11-30T12:00:00",
        "since=2026-02-30T12:00:00Z",
        "since=0001-01-01T00:00:00%2b23:59",
        "since=20261130T120000Z",
        "tag=:x",
        "status=",
        "status=QUEUED",
        "stauts=queued",
        "token=x",
    ],
)
async def test_a_malformed_query_is_422(http: httpx2.AsyncClient, query: str) -> None:
    answer = await http.get(f"/v1/jobs?{query}")
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/{query.partition('=')[0]}"


@pytest.mark.parametrize("query", ["limit=200", "since=2026-11-30t12:00:00z", "tag=x:", ""])
async def test_an_unusual_query_is_read(http: httpx2.AsyncClient, query: str) -> None:
    assert (await http.get(f"/v1/jobs?{query}")).status_code == 200


@pytest.mark.parametrize("body", [None, b"", b"{}"])
async def test_a_cancel_is_idempotent(world: World, http: httpx2.AsyncClient, body: bytes | None) -> None:
    job = await world.a_job()
    first = await http.post(f"/v1/jobs/{job.id}/cancel", content=body)
    second = await http.post(f"/v1/jobs/{job.id}/cancel", content=body)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == {"job_id": job.id, "status": "canceled", "outcome": "canceled"}
    assert second.json() == {"job_id": job.id, "status": "canceled", "outcome": "already_finished"}


@pytest.mark.parametrize(
    ("body", "status"), [(b"{", 400), (b'{"why": 1}', 422), (b"[]", 422), (b"0", 422), (b" " * 4096, 413)]
)
@pytest.mark.parametrize("call", ["cancel", "retry", "token"])
async def test_a_call_that_takes_no_fields_refuses_some(
    world: World, http: httpx2.AsyncClient, call: str, body: bytes, status: int
) -> None:
    job = await world.a_job()
    answer = await http.post(f"/v1/jobs/{job.id}/{call}", content=body)
    assert answer.status_code == status
    assert world.jobs.rows[job.id].status is Status.QUEUED


async def test_a_retry_is_a_new_job_with_the_same_request(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    first = await http.post(f"/v1/jobs/{job.id}/retry")
    second = await http.post(f"/v1/jobs/{job.id}/retry")
    assert (first.status_code, second.status_code) == (202, 202)
    new_ids = {answer.json()["job_id"] for answer in (first, second)}
    assert len(new_ids | {job.id}) == 3
    for new in new_ids:
        assert world.jobs.rows[new].request == job.request
    assert first.headers["location"] == f"/v1/jobs/{first.json()['job_id']}"


async def test_a_retry_may_bring_a_key(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    answers = [
        await http.post(f"/v1/jobs/{job.id}/retry", headers={"Idempotency-Key": "again"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [202, 200]
    assert answers[0].json()["job_id"] == answers[1].json()["job_id"]


async def test_a_job_that_has_not_ended_is_not_retried_nor_removed(
    world: World, http: httpx2.AsyncClient
) -> None:
    job = await world.a_job()
    for answer in (await http.post(f"/v1/jobs/{job.id}/retry"), await http.delete(f"/v1/jobs/{job.id}")):
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:tempa:problem:conflict")


async def test_a_retry_needs_the_engine(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.finish(await world.a_job())
    world.engines.clear()
    answer = await http.post(f"/v1/jobs/{job.id}/retry")
    assert (answer.status_code, answer.json()["code"]) == (422, "ENGINE_UNAVAILABLE")


async def test_a_removed_job_keeps_its_row_and_loses_its_files(
    world: World, http: httpx2.AsyncClient
) -> None:
    job = await world.finish(await world.a_job())
    url = (await http.get(f"/v1/jobs/{job.id}")).json()["result"]["download_url"]
    assert (await http.delete(f"/v1/jobs/{job.id}")).status_code == 204
    assert (await http.delete(f"/v1/jobs/{job.id}")).status_code == 204
    assert (await http.get(url)).status_code == 410
    assert not [path for path in world.folder.rglob("*") if path.is_file()]


async def test_a_removed_job_still_tells_what_it_made_and_links_to_nothing(
    world: World, http: httpx2.AsyncClient
) -> None:
    job = await world.finish(await world.a_job(), b"solid")
    before = (await http.get(f"/v1/jobs/{job.id}")).json()
    await http.delete(f"/v1/jobs/{job.id}")
    answer = await http.get(f"/v1/jobs/{job.id}")
    after, (listed,) = answer.json(), (await http.get("/v1/jobs")).json()["items"]
    JobView.model_validate_json(answer.content, strict=True)
    assert (before["removed"], after["removed"]) == (False, True)
    assert after["result"] == {
        "file_format": "step",
        "file_size_bytes": 5,
        "download_url": None,
        "expires_at": None,
        "artifacts": [],
        "measurements": {"volume": 1.0},
    }
    assert {**after, "removed": False, "result": before["result"]} == before
    assert listed == after


async def test_the_feed_is_read_from_position_to_position(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    await world.a_job(account="other")
    world.jobs.tell(job.id, "job.started")
    world.jobs.tell(job.id, "job.canceled")
    first = (await http.get("/v1/events?limit=2")).json()
    assert [event["type"] for event in first["items"]] == ["job.queued", "job.started"]
    assert first["next_cursor"] == str(first["items"][-1]["position"])
    rest = [
        (await http.get(f"/v1/events?{name}={first['next_cursor']}")).json() for name in ("after", "cursor")
    ]
    assert rest[0] == rest[1]
    assert [(event["sequence"], event["type"]) for event in rest[0]["items"]] == [(3, "job.canceled")]
    last = (await http.get(f"/v1/events?after={rest[0]['next_cursor']}")).json()
    assert last == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("after", ["-1", "x", "1.0", "9" * 19])
async def test_a_position_that_is_none_is_422(http: httpx2.AsyncClient, after: str) -> None:
    answer: Any = await http.get(f"/v1/events?after={after}")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/after")


@pytest.mark.parametrize("name", ["after", "cursor"])
async def test_a_position_that_was_never_given_is_422(
    world: World, http: httpx2.AsyncClient, name: str
) -> None:
    await world.a_job(account="other")
    last = world.jobs.events[-1].position or 0
    assert (await http.get(f"/v1/events?{name}={last}")).status_code == 200  # given, though to others

    answer = await http.get(f"/v1/events?{name}={last + 1}")

    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert (error["pointer"], error["limit"]) == (f"/{name}", last)
    assert f"has come to {last}" in error["message"]


@pytest.mark.parametrize("job_id", ["nonsense", "cad_%00", "cad_" + "0" * 25, "cad_" + "o" * 26])
async def test_what_is_no_id_never_reaches_the_store(
    world: World, http: httpx2.AsyncClient, job_id: str
) -> None:
    assert (await http.get(f"/v1/jobs/{job_id}")).status_code == 404
    assert (await http.get(f"/v1/webhooks/deliveries/{job_id}")).status_code == 404
    assert world.jobs.looks == world.webhooks.looks == 0
