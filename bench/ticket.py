"""What a ticket costs: the service's own time around the kernel, and how fast it answers and fails.

    .venv/bin/python bench/ticket.py [--rounds 40] [--seconds 10]

Machines are shared and noisy, so every figure stands beside what it is measured against in the same
run: the disk's flush, an idle fork, the bare kernel. A missed target is printed as missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from tempa.core.accounts import new_secret_key
from tempa.engines.host.engine_host import EngineHost
from tempa.engines.solid.about import OpencascadeBrep
from tempa.jobs.ports import Order, RunLimits
from tempa.testing.seeds import SEED_001
from tempa.testing.server import Server, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HERE = Path(__file__).parent
PLUGINS = HERE.parent / "tests" / "plugins"
FAILURES = {"hang": "KERNEL_TIMEOUT", "eat": "OUT_OF_MEMORY", "crash": "KERNEL_CRASHED"}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    found: float
    target: float
    samples: Sequence[float]

    def text(self) -> str:
        verdict = "met" if self.found <= self.target else "MISSED"
        spread = f"{min(self.samples):.1f} / {statistics.median(self.samples):.1f} / {max(self.samples):.1f}"
        return f"{self.what:<58} {self.found:>9.1f} {self.target:>9.1f}  {verdict:<7} {spread}"


def percentile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Flushes:
    """Appends and flushes, as a commit of the store does."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "flush").open("ab", buffering=0)

    def once(self) -> float:
        start = time.perf_counter()
        self._file.write(b"x" * 4096)
        os.fsync(self._file.fileno())
        return (time.perf_counter() - start) * 1000


@contextlib.contextmanager
def bare_kernel() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(HERE / "bare_kernel.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.terminate()


def run_bare(process: subprocess.Popen[str], work: object) -> float:
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(work) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline()) * 1000


async def empty_attempt(folder: Path, rounds: int) -> float:
    """One after the other, so that each waits for its predecessor's end and its own child's fork."""
    order = Order("noop", "noop_runner", "fork", {}, folder, RunLimits(60, 4 << 30))
    host, took = EngineHost(extra_path=(HERE,)), []
    for _ in range(rounds + 3):
        start = time.perf_counter()
        await host.run(order, lambda stage, fraction: None)
        took.append((time.perf_counter() - start) * 1000)
    await host.close()
    return statistics.median(took[3:])


def submit_once(http: httpx2.Client) -> float:
    """From the POST's first byte to the client's knowing that the job is completed."""
    headers = {"Idempotency-Key": new_secret_key()}
    start = time.perf_counter()
    job_id = http.post("/v1/models/generate", json={**SEED_001, "cache": "bypass"}, headers=headers).json()[
        "job_id"
    ]
    job = wait_for_end(http, job_id)
    assert job["status"] == "completed", job
    return (time.perf_counter() - start) * 1000


async def overhead(http: httpx2.Client, folder: Path, rounds: int) -> tuple[Row, list[str]]:
    reading = OpencascadeBrep().read({key: SEED_001[key] for key in ("parameters", "export_format")})
    flushes = Flushes(folder)
    bare: list[float] = []
    fork: list[float] = []
    flush: list[float] = []
    total: list[float] = []
    with bare_kernel() as kernel:
        for number in range(rounds + 3):
            flush_ms = [flushes.once() for _ in range(6)]
            figures = (
                run_bare(kernel, reading.work),
                run_bare(kernel, None),
                sum(flush_ms),
                await asyncio.to_thread(submit_once, http),
            )
            if number >= 3:  # the first ones warm both sides up
                for samples, figure in zip((bare, fork, flush, total), figures, strict=True):
                    samples.append(figure)
    own = [whole - kernel_ms for whole, kernel_ms in zip(total, bare, strict=True)]
    target = statistics.median(fork) + statistics.median(flush) + 5
    told = [
        f"bare warm kernel (build, export, check), ms p50       {statistics.median(bare):8.1f}",
        f"idle fork and reap of the loaded kernel, ms p50        {statistics.median(fork):8.1f}",
        f"an attempt that does nothing, through the host, ms p50 {await empty_attempt(folder, rounds):8.1f}",
        f"6 flushes, ms p50                                      {statistics.median(flush):8.1f}",
        f"submit -> completed as the client sees it, ms p50      {statistics.median(total):8.1f}",
    ]
    return Row(
        "overhead: submit -> completed less the bare kernel, p50", statistics.median(own), target, own
    ), told


async def answers(server: Server, folder: Path, seconds: float) -> Row:
    """100 requests a second, open loop: one goes out when its time has come, whatever the others do."""
    assert server.ready
    flushes, took, flush = Flushes(folder), [], []

    async def one(http: httpx2.AsyncClient, due: float) -> None:
        answer = await http.post(
            "/v1/models/generate", json=SEED_001, headers={"Idempotency-Key": new_secret_key()}
        )
        assert answer.status_code == 202, answer.text
        took.append((time.perf_counter() - due) * 1000)

    headers = {"Authorization": f"Bearer {server.ready['api_key']}"}
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, limits=limits, trust_env=False
    ) as http:
        start, tasks = time.perf_counter() + 0.5, []
        for number in range(int(seconds * 100)):
            due = start + number / 100
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(http, due)))
            if number % 10 == 0:
                flush.append(await asyncio.to_thread(flushes.once))
        await asyncio.gather(*tasks)
    return Row(
        "202 at 100 requests/s open loop, p99", percentile(took, 0.99), 5 * percentile(flush, 0.99) + 10, took
    )


def identical(http: httpx2.Client) -> Row:
    body = {**SEED_001, "tags": {"bench": "identical"}}
    wait_for_end(http, http.post("/v1/models/generate", json=body).json()["job_id"])
    before = kernel_runs(http)
    for _ in range(20):
        assert http.post("/v1/models/generate", json=body).status_code == 200
    runs = kernel_runs(http) - before
    return Row("kernel runs for 20 identical requests", runs, 0, [runs])


def kernel_runs(http: httpx2.Client) -> float:
    lines = http.get("/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("tempa_engine_runs_total{"))


def failures(http: httpx2.Client, do: str, times: int) -> Row:
    took = []
    for number in itertools.islice(itertools.count(), times):
        body = {"engine": "trial", "parameters": {"do": do, "n": number}}
        job = wait_for_end(http, http.post("/v1/models/generate", json=body).json()["job_id"])
        assert job["error"]["code"] == FAILURES[do], job
        took.append(since_crossing(http, job, do) * 1000)
    return Row(f"{FAILURES[do]}: from crossing to the failed status, p95", percentile(took, 0.95), 300, took)


def since_crossing(http: httpx2.Client, job: dict[str, Any], do: str) -> float:
    ended = datetime.fromisoformat(job["completed_at"]).timestamp()
    if (
        do == "hang"
    ):  # the limit is counted from the fork, which comes after the claim: this is an upper bound
        return ended - datetime.fromisoformat(job["started_at"]).timestamp() - 1.0
    events = http.get(f"/v1/jobs/{job['job_id']}/events").text
    data = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]
    last = [event for event in data if event.get("stage") in {"crossing", "dying"}][-1]
    return ended - datetime.fromisoformat(last["reached_at"]).timestamp()


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=40)
    arguments.add_argument("--seconds", type=float, default=10)
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = {
            "PYTHONPATH": str(PLUGINS),
            "TEMPA_ENGINES__TRIAL__TIMEOUT_SECONDS": "1.0",
            "TEMPA_JOBS__MAX_CRASH_RETRIES": "0",
        }
        with Server(folder / "data", environment) as server, server.http() as http:
            row, told = await overhead(http, folder, asked.rounds)
            rows = [row, identical(http), *(failures(http, do, 20) for do in FAILURES)]
            rows.append(await answers(server, folder, asked.seconds))
    print("\n".join(told))
    print(f"\n{'milliseconds':<58} {'found':>9} {'target':>9}  verdict min / median / max")
    for line in rows:
        print(line.text())


asyncio.run(main())
