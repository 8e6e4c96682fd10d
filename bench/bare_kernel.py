"""The bare warm kernel, for each line on standard input: the engine's own `run` in this process, or a fork.

A line is the work, or `null` for an idle fork and reap. What is printed is how many seconds it took.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tempa.engines.solid import opencascade


def main() -> None:
    opencascade.load()
    gc.collect()
    gc.freeze()  # as a zygote does: its forks share these pages
    for line in sys.stdin:
        work = json.loads(line)
        print(fork_seconds() if work is None else run_seconds(work), flush=True)


def run_seconds(work: dict[str, Any]) -> float:
    folder = Path(tempfile.mkdtemp())
    start = time.perf_counter()
    opencascade.run(work, folder, lambda stage, fraction=None: None)
    took = time.perf_counter() - start
    shutil.rmtree(folder)
    return took


def fork_seconds() -> float:
    start = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return time.perf_counter() - start


main()
