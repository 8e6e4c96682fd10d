"""What an embedded server holds in memory when it has nothing to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.environments import ROOT
from bench.probes import resident_mib
from bench.ratios import Goal
from bench.table import Row
from tempa.testing.server import Server, wait_for_end

if TYPE_CHECKING:
    from pathlib import Path

GOAL = Goal(100 * 1e6 / 2**20, at_least=False)  # 100 MB, in MiB


def idle(folder: Path, rounds: int) -> list[Row]:
    """After its start, and after 20 jobs have gone through. Its zygotes are processes of their own."""
    started, worked = [], []
    for number in range(rounds):
        environment = {"PYTHONPATH": str(ROOT / "tests" / "plugins")}
        with Server(folder / f"idle-{number}", environment) as server, server.http() as http:
            assert server.process
            started.append(resident_mib(server.process.pid))
            for n in range(20):
                body = {"engine": "trial", "parameters": {"do": "finish", "n": n}}
                answer = http.post("/v1/models/generate", json=body).raise_for_status()
                assert wait_for_end(http, answer.json()["job_id"])["status"] == "completed"
            worked.append(resident_mib(server.process.pid))
    return [
        Row("idle embedded server, MiB resident, just started", started, GOAL),
        Row("idle embedded server, MiB resident, after 20 jobs", worked, GOAL),
    ]
