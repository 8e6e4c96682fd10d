"""What the machine does apart from us: how quick its disk flushes, how much else runs, who used the CPU."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

_PROBE_SECONDS = 0.25
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Weather:
    """The machine at one moment."""

    flushes_per_second: float
    load: float  # processes that ran or waited for the disk, over the last minute


def machine() -> str:
    """In words."""
    return f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}, {platform.platform()}"


def weather(folder: Path) -> Weather:
    """Append 4 KiB and flush, as a commit does, for a quarter of a second."""
    path = folder / "probe"
    flushes, start = 0, time.perf_counter()
    with path.open("wb", buffering=0) as file:
        while time.perf_counter() - start < _PROBE_SECONDS:
            file.write(b"x" * 4096)
            os.fdatasync(file.fileno())
            flushes += 1
        took = time.perf_counter() - start
    path.unlink()
    return Weather(flushes / took, os.getloadavg()[0])


def cpu_seconds(root_pid: int) -> float:
    """Used so far by a server: the process, its children that live, and those that it has buried."""
    while True:
        root = _ticks(root_pid, reaped=True)
        living = sum(sum(_ticks(pid, reaped=False)) for pid in children(root_pid))
        # One that was buried meanwhile stands in neither sum: a backend took half of a phase's CPU along.
        if _ticks(root_pid, reaped=True)[2:] == root[2:]:
            return (sum(root) + living) / _TICKS_PER_SECOND


def children(pid: int) -> list[int]:
    """The process's own children."""
    text = "".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for child in text.split()]


def resident_mib(pid: int) -> float:
    """The memory a process has in RAM, pages it shares included."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} tells no VmRSS")


def _ticks(pid: int, *, reaped: bool) -> list[int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return [0]
    fields = stat.rpartition(")")[2].split()  # its name may hold spaces and parentheses
    return [int(field) for field in fields[11 : 15 if reaped else 13]]
