"""The systems that are measured, and how each is set."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from bench.environments import ROOT, Missing
from bench.queue import peers
from bench.queue.pins import NODE, PROCRASTINATE, VALKEY
from bench.queue.services import Files, postgres, valkey
from bench.queue.systems.tempa import SLOTS
from bench.queue.trial import System

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.queue.services import Postgres, Valkey

FLUSHED = "flushed"  # an answer means that the job is on disk
SECOND = "one second"  # a power cut loses what was answered within the last second

SQLITE = "Tempa SQLite"
POSTGRES = "Tempa PostgreSQL"
PROCRASTINATE_NAME = "procrastinate"
GRAPHILE = "graphile-worker"
GRAPHILE_SINGLY = "graphile-worker singly"
BULLMQ = "BullMQ always"
BULLMQ_SECOND = "BullMQ everysec"

TEMPA_SETTINGS = f"{SLOTS} slots; a ticket writes key + job + event, a run attempt + 2 events; uvloop"


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[dict[str, System]]:
    """All that can be had, by name; of those that cannot it is said why."""
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(postgres())
        systems = [_sqlite(folder), _postgres(cluster)]
        with _unless_missing(PROCRASTINATE_NAME):
            systems.append(_procrastinate(cluster))
        with _unless_missing(GRAPHILE):
            systems += [_graphile(cluster), _graphile(cluster, singly=True)]
        for name, append_fsync in ((BULLMQ, "always"), (BULLMQ_SECOND, "everysec")):
            with _unless_missing(name):
                server = stack.enter_context(valkey(peers.valkey_server(), append_fsync))
                systems.append(_bullmq(name, server))
        yield {system.name: system for system in systems}


@contextlib.contextmanager
def _unless_missing(name: str) -> Iterator[None]:
    try:
        yield
    except Missing as missing:
        print(f"not run: {name}: {missing}", flush=True)


def _sqlite(folder: Path) -> System:
    return System(
        name=SQLITE,
        command=(sys.executable, "-m", "bench.queue.systems.tempa_sqlite"),
        service=Files(folder),
        durability=FLUSHED,
        settings=f"{TEMPA_SETTINGS}; one process",
        jobs={"admission": 6000, "drain": 3000, "pickup": 150},
        two_processes=False,
    )


def _postgres(cluster: Postgres) -> System:
    return System(
        name=POSTGRES,
        command=(sys.executable, "-m", "bench.queue.systems.tempa_postgres"),
        service=cluster,
        durability=FLUSHED,
        settings=f"{TEMPA_SETTINGS}; pool of 5; NOTIFY between processes",
        jobs={"admission": 6000, "drain": 3000, "pickup": 150},
    )


def _procrastinate(cluster: Postgres) -> System:
    return System(
        name=PROCRASTINATE_NAME,
        command=(str(peers.procrastinate_python()), "-m", "bench.queue.systems.procrastinate"),
        service=cluster,
        durability=FLUSHED,
        settings=f"{PROCRASTINATE[0]}, {PROCRASTINATE[1]}; async, concurrency=32, pool of 40, listen_notify",
        jobs={"admission": 800, "drain": 400, "pickup": 150},
    )


def _graphile(cluster: Postgres, *, singly: bool = False) -> System:
    batching = "off" if singly else "localQueue.size=500, completeJobBatchDelay=0, failJobBatchDelay=0"
    return System(
        name=GRAPHILE_SINGLY if singly else GRAPHILE,
        command=("node", str(ROOT / "bench/queue/systems/graphile_worker.mjs")),
        service=cluster,
        durability=FLUSHED,
        settings=f"{NODE[2]}; concurrentJobs=24, maxPoolSize=25; batching of jobs/s: {batching}",
        jobs={"admission": 2000, "drain": 3000, "pickup": 150},
        environment={"BENCH_NODE": str(peers.node_folder()), "BENCH_BATCHING": "" if singly else "on"},
    )


def _bullmq(name: str, server: Valkey) -> System:
    return System(
        name=name,
        command=("node", str(ROOT / "bench/queue/systems/bullmq.mjs")),
        service=server,
        durability=FLUSHED if server.append_fsync == "always" else SECOND,
        settings=f"{NODE[0]}, {NODE[1]}, {VALKEY[0]}; worker concurrency=64",
        jobs={"admission": 6000, "drain": 3000, "pickup": 150},
        environment={"BENCH_NODE": str(peers.node_folder())},
    )
