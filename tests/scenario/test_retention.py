"""What is past its time: files go, then rows; the API says 410, and readers of the feed go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.wirings import PLUGINS

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from tests.wirings import Wiring


PATIENCE_SECONDS = 60.0
A_SECOND_IN_DAYS = 1 / 86_400


def _post(http: httpx2.Client, number: int) -> httpx2.Response:
    body = {"engine": "trial", "parameters": {"do": "finish", "n": number}}
    return http.post("/v1/models/generate", json=body, headers={"Idempotency-Key": f"ticket-{number}"})


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what


def _feed(http: httpx2.Client, after: int = 0) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = http.get("/v1/events", params={"after": after}).json()["items"]
    return items


def test_a_job_past_its_time_is_pruned_and_its_readers_go_on(wiring: Wiring, tmp_path: Path) -> None:
    """The janitor's first round comes with the start, so the server is started anew to see one."""
    environment = {
        "PYTHONPATH": PLUGINS,
        "TEMPA_JOBS__RETENTION_DAYS": str(A_SECOND_IN_DAYS),
        "TEMPA_JOBS__ROWS_KEPT_DAYS": "0",
    }
    running = wiring.server(tmp_path / "data", environment)
    with running:
        with running.http() as http:
            job_id = _post(http, 1).json()["job_id"]
            _until(lambda: "job.completed" in [event["type"] for event in _feed(http)], "the job did not end")
            position = _feed(http)[-1]["position"]
            _until(lambda: http.get(f"/v1/jobs/{job_id}").status_code == 410, "its retention did not end")
        assert running.stop() == 0
        running.start()
        with running.http() as http:
            _until(lambda: http.get("/v1/jobs").json()["items"] == [], "it was not pruned")

            assert http.get(f"/v1/jobs/{job_id}").status_code == 410
            assert http.get(f"/v1/jobs/{job_id}/events").status_code == 410
            assert _feed(http) == []
            again = _post(http, 1)
            assert again.status_code == 202  # its key is free
            assert again.json()["job_id"] != job_id
            _until(lambda: bool(_feed(http, position)), "the feed's reader hears no more")
            assert all(event["position"] > position for event in _feed(http, position))
        assert running.stop() == 0
    left = [path.name for path in (tmp_path / "data" / "artifacts").rglob("*") if job_id in path.name]
    assert left == []
