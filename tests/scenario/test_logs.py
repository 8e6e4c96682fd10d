"""One JSON line an event, with the ids of what it is about, and no secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tempa.testing.seeds import SEED_001
from tempa.testing.server import Server, wait_for_end

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.testing.receiver import Receiver


def test_a_jobs_way_can_be_read_off_the_log(tmp_path: Path, receiver: Receiver) -> None:
    with Server(tmp_path / "data", {}) as server:
        with server.http() as http:
            asked = {**SEED_001, "webhook_url": receiver.url()}
            job_id = http.post("/v1/models/generate", json=asked).json()["job_id"]
            wait_for_end(http, job_id)
            receiver.wait_for(1, 30)
        assert server.stop() == 0
        text = (tmp_path / "data.log").read_text()
        assert server.ready
        assert server.ready["api_key"] not in text
        assert server.ready["webhook_secret"] not in text
    lines = [json.loads(line) for line in text.splitlines()]
    mine = [line["event"] for line in lines if line.get("job_id") == job_id]
    # Admitted and claimed in one commit: either line may come first.
    assert sorted(mine[:2]) == ["job admitted", "job claimed"]
    assert mine[2:] == ["attempt ended: complete", "webhook attempt: delivered"]
    assert any(line["event"].startswith("serving at http://127.0.0.1:") for line in lines)
