"""The bare warm kernel: the engine's own `run`, in this process, once for each line on standard input."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tempa.engines.solid import opencascade


def main() -> None:
    opencascade.load()
    for line in sys.stdin:
        folder = Path(tempfile.mkdtemp())
        start = time.perf_counter()
        opencascade.run(json.loads(line), folder, lambda stage, fraction=None: None)
        print(time.perf_counter() - start, flush=True)
        shutil.rmtree(folder)


main()
