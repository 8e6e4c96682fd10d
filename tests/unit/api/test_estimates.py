"""`progress.eta_seconds`: what a job that waits or runs is told, and what that costs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tempa.jobs.model import PastJob
from tempa.jobs.wire import JobView
from tests.unit.api.conftest import NOW

if TYPE_CHECKING:
    import httpx2

    from tests.unit.api.conftest import World


async def progress(http: httpx2.AsyncClient, job_id: str) -> dict[str, Any]:
    answer = await http.get(f"/v1/jobs/{job_id}")
    JobView.model_validate_json(answer.content)
    told: dict[str, Any] = answer.json()["progress"]
    return told


async def test_a_job_that_waits_is_told_what_past_ones_took(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.past = [PastJob(10.0 + n, 4.0 + n / 10) for n in range(11)]  # 10 to 20, 4 to 5
    job = await world.a_job()
    world.clock.advance(3.0)
    told = await progress(http, job.id)

    assert told["eta_seconds"] == 12.0
    assert told["eta_range_seconds"] == [8.0, 16.0]
    assert world.jobs.learned == [("opencascade-brep", 7 * 86_400.0, 50)]


async def test_a_job_that_runs_is_told_what_is_left(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.past = [PastJob(100.0, 10.0), PastJob(100.0, 20.0), PastJob(100.0, 30.0)]
    job = await world.a_job()
    world.jobs.tell(job.id, "job.started", epoch=1, started_at=NOW + timedelta(seconds=2))
    world.clock.advance(17.0)
    told = await progress(http, job.id)

    assert told["eta_seconds"] == 5.0
    assert told["eta_range_seconds"] == [0.0, 13.0]  # 12 and 28, less the 15 that it has run
    world.clock.advance(60.0)
    late = await progress(http, job.id)
    assert (late["eta_seconds"], late["eta_range_seconds"]) == (0.0, [0.0, 0.0])


async def test_with_nothing_to_learn_from_nothing_is_told(world: World, http: httpx2.AsyncClient) -> None:
    job = await world.a_job()
    told = await progress(http, job.id)

    assert (told["eta_seconds"], told["eta_range_seconds"]) == (None, None)


async def test_a_job_that_has_ended_needs_no_estimate(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.past = [PastJob(1.0, 1.0)]
    job = await world.finish(await world.a_job())
    told = await progress(http, job.id)

    assert (told["eta_seconds"], told["eta_range_seconds"]) == (None, None)
    assert world.jobs.learned == []


async def test_what_was_learned_holds_for_ten_seconds(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.past = [PastJob(100.0, 1.0)]
    job, other = await world.a_job(), await world.a_job()
    for _ in range(20):
        await progress(http, job.id)
        await progress(http, other.id)
    world.clock.advance(9.9)
    await progress(http, job.id)
    assert len(world.jobs.learned) == 1

    world.clock.advance(0.1)
    world.jobs.past = [PastJob(200.0, 1.0)]
    assert (await progress(http, job.id))["eta_seconds"] == 190.0
    assert len(world.jobs.learned) == 2


async def test_a_list_tells_no_estimates(world: World, http: httpx2.AsyncClient) -> None:
    world.jobs.past = [PastJob(1.0, 1.0)]
    await world.a_job()
    (listed,) = (await http.get("/v1/jobs")).json()["items"]

    assert listed["progress"]["eta_seconds"] is None
    assert world.jobs.learned == []
