"""What /proc tells of a process, beside what the process itself says."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench import probes
from bench.probes import children, cpu_seconds, resident_mib, weather

BUSY = """
import sys, time
while time.process_time() < 0.3:
    pass
print(time.process_time(), flush=True)
sys.stdin.read()
"""


def test_cpu_of_a_server_is_its_own_and_its_living_childrens() -> None:
    before = cpu_seconds(os.getpid())
    own_before = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        told = float(child.stdout.readline())
        living = cpu_seconds(os.getpid()) - before
        assert child.pid in children(os.getpid())
        child.communicate()
    own = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - own_before - told
    buried = cpu_seconds(os.getpid()) - before
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert living >= told - 2 * tick
    assert buried >= told - 2 * tick  # a child that has ended still counts
    assert buried < told + own + 1.0


def test_a_child_that_is_buried_while_we_count_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    # The server (pid 1) used 10 ticks. Its child (pid 2) used 50 and is buried right after the first look.
    looks = iter([[5, 5, 0, 0], [5, 5, 30, 20], [5, 5, 30, 20], [5, 5, 30, 20]])
    monkeypatch.setattr(probes, "_ticks", lambda pid, *, reaped: next(looks) if reaped else [0])
    monkeypatch.setattr(probes, "children", lambda pid: [2])
    assert cpu_seconds(1) == 60 / os.sysconf("SC_CLK_TCK")


def test_resident_memory_is_what_the_kernel_counts() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    counted = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    assert abs(resident_mib(os.getpid()) - counted) < 8


def test_the_weather_leaves_nothing_behind(tmp_path: Path) -> None:
    seen = weather(tmp_path)
    assert seen.flushes_per_second > 0
    assert not list(tmp_path.iterdir())
