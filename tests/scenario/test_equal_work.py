"""Equal work under different keys runs the kernel once, and each job has files of its own."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing.server import wait_for_end, wait_for_start
from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from tempa.testing.server import Fleet, Server
    from tests.wirings import Wiring

KEYS = (f"equal-work-{number}" for number in count())


@pytest.fixture(scope="module")
def server(wiring: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server | Fleet]:
    environment = {
        "PYTHONPATH": PLUGINS,
        "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "30",
        **wiring.slots(2),
    }
    with wiring.server(tmp_path_factory.mktemp("tempa") / "data", environment) as running:
        yield running


def ask(http: httpx2.Client, parameters: dict[str, Any], **options: Any) -> str:
    """A ticket under a key of its own."""
    body = {"engine": "trial", "parameters": parameters, **options}
    answer = http.post("/v1/models/generate", json=body, headers={"Idempotency-Key": next(KEYS)})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def kernel_runs(server: Server | Fleet) -> float:
    lines = server.metrics().splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("tempa_engine_runs_total{"))


def download(http: httpx2.Client, job: dict[str, Any]) -> httpx2.Response:
    return http.get(job["result"]["download_url"], headers={"Authorization": ""})


def test_the_second_of_equal_jobs_has_the_same_files_without_a_run(
    http: httpx2.Client, server: Server | Fleet
) -> None:
    before = kernel_runs(server)
    first = wait_for_end(http, ask(http, {"do": "finish", "n": "twice"}))
    second = wait_for_end(http, ask(http, {"do": "finish", "n": "twice"}, tags={"order": "2"}, priority=9))

    assert kernel_runs(server) == before + 1
    assert first["job_id"] != second["job_id"]
    assert [job["status"] for job in (first, second)] == ["completed", "completed"]
    assert (first["cached"], second["cached"], second["compute_time_ms"]) == (False, True, 0)
    assert second["result"]["measurements"] == first["result"]["measurements"] == {"n": "twice"}
    assert [download(http, job).content for job in (first, second)] == [b"trial twice\n"] * 2


def test_removing_the_first_leaves_the_second_its_files_and_the_third_a_twin(
    http: httpx2.Client, server: Server | Fleet
) -> None:
    first, second = (wait_for_end(http, ask(http, {"do": "finish", "n": "removed"})) for _ in range(2))
    before = kernel_runs(server)

    assert http.delete(f"/v1/jobs/{first['job_id']}").is_success

    assert download(http, first).is_client_error
    assert download(http, second).content == b"trial removed\n"
    third = wait_for_end(http, ask(http, {"do": "finish", "n": "removed"}))
    assert (third["cached"], kernel_runs(server)) == (True, before)


def test_when_all_are_removed_the_kernel_runs_again(http: httpx2.Client, server: Server | Fleet) -> None:
    first = wait_for_end(http, ask(http, {"do": "finish", "n": "all removed"}))
    assert http.delete(f"/v1/jobs/{first['job_id']}").is_success
    before = kernel_runs(server)

    again = wait_for_end(http, ask(http, {"do": "finish", "n": "all removed"}))

    assert (again["cached"], kernel_runs(server)) == (False, before + 1)


def test_a_bypass_runs_the_kernel_again(http: httpx2.Client, server: Server | Fleet) -> None:
    wait_for_end(http, ask(http, {"do": "finish", "n": "bypass"}))
    before = kernel_runs(server)

    again = wait_for_end(http, ask(http, {"do": "finish", "n": "bypass"}, cache="bypass"))

    assert (again["status"], again["cached"], kernel_runs(server)) == ("completed", False, before + 1)


@pytest.mark.parametrize(("option", "cached"), [("use", True), ("bypass", False)])
def test_a_retry_of_a_completed_job_goes_by_the_jobs_own_option(
    http: httpx2.Client, option: str, *, cached: bool
) -> None:
    first = wait_for_end(http, ask(http, {"do": "finish", "n": f"retry {option}"}, cache=option))

    answer = http.post(f"/v1/jobs/{first['job_id']}/retry")

    assert answer.status_code == 202
    assert wait_for_end(http, answer.json()["job_id"])["cached"] is cached


def test_equal_work_waits_for_the_one_that_runs_and_takes_its_result(
    http: httpx2.Client, server: Server | Fleet, tmp_path: Path
) -> None:
    pipe, first, second = _one_runs_and_one_waits(http, tmp_path)
    before = kernel_runs(server)

    os.close(os.open(pipe, os.O_WRONLY))  # the first one goes on

    jobs = [wait_for_end(http, job_id) for job_id in (first, second)]
    assert [(job["status"], job["cached"]) for job in jobs] == [("completed", False), ("completed", True)]
    assert kernel_runs(server) == before + 1


def test_when_the_one_that_runs_is_canceled_the_next_one_runs(http: httpx2.Client, tmp_path: Path) -> None:
    pipe, first, second = _one_runs_and_one_waits(http, tmp_path)

    http.post(f"/v1/jobs/{first}/cancel")
    assert wait_for_end(http, first)["status"] == "canceled"
    assert wait_for_start(http, second)["status"] == "processing"
    os.close(os.open(pipe, os.O_WRONLY))

    job = wait_for_end(http, second)
    assert (job["status"], job["cached"]) == ("completed", False)


def _one_runs_and_one_waits(http: httpx2.Client, folder: Path) -> tuple[Path, str, str]:
    """Two equal jobs of two slots: other work that came later is done, and the second still waits."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    parameters = {"do": "wait", "path": str(pipe)}
    first = ask(http, parameters)
    assert wait_for_start(http, first)["status"] == "processing"
    second = ask(http, parameters)
    wait_for_end(http, ask(http, {"do": "finish", "n": str(pipe)}))
    assert http.get(f"/v1/jobs/{second}").json()["status"] == "queued"
    return pipe, first, second
