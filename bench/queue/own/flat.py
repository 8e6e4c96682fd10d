"""Claim + complete in a store full of finished jobs, beside an empty one; and behind an idle snapshot."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import asyncpg

from bench.probes import weather
from bench.queue.own.cycles import age, p50s_ms
from bench.queue.own.filling import JOB_BYTES_MAX, fill_postgres, fill_sqlite, sample
from bench.queue.services import Files, postgres
from bench.queue.systems import tempa_postgres, tempa_sqlite
from bench.ratios import Goal, Pair, ratios
from bench.table import Row

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tempa.jobs.ports import JobStore

FULL_GOAL = Goal(1.25, at_least=False)
PINNED_GOAL = Goal(1.5, at_least=False)
_CYCLES = 300
_WARM_CYCLES = 50  # plans and caches
# Told at once, so that a ratio is one of work and not of two equal waits for the disk.
_NO_WAIT = {"synchronous_commit": "off"}


def room_for(folder: Path, wanted: int) -> int:
    """How many jobs the disk can take."""
    return min(wanted, int(shutil.disk_usage(folder).free * 0.8) // JOB_BYTES_MAX)


async def full_postgres(folder: Path, rounds: int, wanted: int) -> list[Row]:
    """With `wanted` finished jobs, or as many as the disk can take."""
    jobs = room_for(folder, wanted)
    with postgres(**_NO_WAIT) as cluster, cluster.fresh() as empty_url, cluster.fresh() as full_url:
        async with tempa_postgres.opening(full_url) as opened:
            sample_id = await sample(opened.store)
        await fill_postgres(full_url, sample_id, jobs)
        async with tempa_postgres.opening(empty_url) as empty, tempa_postgres.opening(full_url) as full:
            pairs = await _unflushed_pairs(rounds, full.store, empty.store)
    what = f"claim + complete p50: {jobs:,} finished / empty, PostgreSQL"
    note = "synchronous_commit=off"
    return [_ratio(what, pairs, FULL_GOAL, note), *_figures(pairs, ("full", "empty"))]


async def full_sqlite(folder: Path, rounds: int, wanted: int) -> list[Row]:
    """The same in a file, which is flushed at every commit."""
    jobs = room_for(folder, wanted)
    files = Files(folder)
    with files.fresh() as empty_path, files.fresh() as full_path:
        async with tempa_sqlite.opening(full_path) as opened:
            sample_id = await sample(opened.store)
        fill_sqlite(full_path, sample_id, jobs)
        async with tempa_sqlite.opening(empty_path) as empty, tempa_sqlite.opening(full_path) as full:
            pairs = await _flushed_pairs(folder, rounds, full.store, empty.store)
    what = f"claim + complete p50: {jobs:,} finished / empty, SQLite"
    note = "flushed: 2 commits a cycle"
    return [_ratio(what, pairs, FULL_GOAL, note), *_figures(pairs, ("full", "empty"))]


async def pinned(rounds: int, jobs: int) -> list[Row]:
    """After `jobs` jobs of several accounts, with a snapshot from before the first held open."""
    with postgres(**_NO_WAIT) as cluster, cluster.fresh() as fresh_url, cluster.fresh() as pinned_url:
        async with (
            tempa_postgres.opening(fresh_url) as fresh,
            tempa_postgres.opening(pinned_url) as aged,
            _snapshot(pinned_url),
        ):
            await age(aged.store, jobs)
            pairs = await _unflushed_pairs(rounds, aged.store, fresh.store)
    what = f"claim + complete p50: idle snapshot over {jobs:,} jobs / fresh"
    note = "4 accounts, synchronous_commit=off"
    return [_ratio(what, pairs, PINNED_GOAL, note), *_figures(pairs, ("behind the snapshot", "fresh"))]


async def _unflushed_pairs(rounds: int, ours: JobStore, theirs: JobStore) -> list[Pair]:
    """No figure holds a wait for the disk: however quick it was, the pairs count."""
    await p50s_ms(ours, theirs, _WARM_CYCLES)
    return [Pair(*await p50s_ms(ours, theirs, _CYCLES), ()) for _ in range(rounds)]


async def _flushed_pairs(folder: Path, rounds: int, ours: JobStore, theirs: JobStore) -> list[Pair]:
    await p50s_ms(ours, theirs, _WARM_CYCLES)
    found = []
    for _ in range(rounds):
        before = weather(folder)
        figures = await p50s_ms(ours, theirs, _CYCLES)
        flushes = (before.flushes_per_second, weather(folder).flushes_per_second)
        found.append(Pair(*figures, flushes))
    return found


def _ratio(what: str, pairs: list[Pair], goal: Goal, note: str) -> Row:
    counted = ratios(pairs)
    return Row(what, counted, goal, len(pairs) - len(counted), note)


def _figures(pairs: list[Pair], names: tuple[str, str]) -> list[Row]:
    ours, theirs = names
    return [
        Row(f"    {ours}, ms", [pair.ours for pair in pairs]),
        Row(f"    {theirs}, ms", [pair.theirs for pair in pairs]),
    ]


@contextlib.asynccontextmanager
async def _snapshot(url: str) -> AsyncIterator[None]:
    """What a forgotten session does to a database."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("begin isolation level repeatable read read only")
        await connection.execute("select count(*) from job")
        yield
    finally:
        await connection.close()
