"""kill -9 in the middle of it: what was acknowledged is there, whole."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.core.clock import SystemClock
from tempa.testing.contracts.samples import COMPLETED

LOAD = Path(__file__).with_name("load.py")


def run_and_kill(path: Path, lines: int) -> list[list[str]]:
    """What the load printed up to its death; it dies once it has printed `lines`."""
    process = subprocess.Popen(
        [sys.executable, str(LOAD), str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    with process:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        told += process.stdout.readlines()
    whole = [line.split() for line in told if line.endswith("\n")]
    assert len(whole) >= lines, "the load ended by itself"
    return whole


@pytest.mark.parametrize("lines", [40, 300, 1200])
def test_what_was_acknowledged_survives_kill_9(path: Path, lines: int) -> None:
    told = run_and_kill(path, lines)

    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        assert connection.execute("pragma foreign_key_check").fetchall() == []
        keys = dict(connection.execute("select job_id, key from idempotency"))
        jobs = dict(connection.execute("select id, status from job"))
        firsts = {job for (job,) in connection.execute("select job_id from event where sequence = 1")}
        ends = {job for (job,) in connection.execute("select job_id from event where type = 'job.completed'")}
        torn = connection.execute(
            "select id from job where sequence <> (select count(*) from event where job_id = job.id)"
        ).fetchall()
    admitted = {job: key for word, job, key in told if word == "admitted"}
    completed = {job for word, job, _ in told if word == "completed"}

    assert admitted
    assert {job: keys.get(job) for job in admitted} == admitted
    assert admitted.keys() <= firsts
    assert {jobs[job] for job in completed} <= {"completed"}
    assert completed <= ends
    assert set(keys) == set(jobs) == firsts  # of what was not acknowledged, all is there or nothing
    assert torn == []


async def test_a_store_that_was_killed_goes_on_at_once(path: Path) -> None:
    run_and_kill(path, 300)
    store = await SqliteStore.open(path, clock=SystemClock(), wake=InProcessWake())
    try:
        running = (await store.counts()).get(("processing", "cpu"), 0)
        assert await store.void_leases() == running
        lapsed = await store.expired(1000)
        assert len(lapsed) == running
        for one in lapsed:
            assert await store.take_over(one.lease, COMPLETED)
        assert ("processing", "cpu") not in await store.counts()
    finally:
        await store.close()
