from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tempa

START = Path(tempa.__file__).parent / "engines" / "host" / "resident_start.py"
PROOF = """
import importlib.util, runpy, sys
start = runpy.run_path(sys.argv[1])
start["take_package"](__import__("pathlib").Path(sys.argv[2]))
import tempa.core.errors
print(importlib.util.find_spec("pydantic"), tempa.core.errors.__file__, tempa.__version__)
"""


def test_tempa_is_found_and_what_lies_beside_it_is_not() -> None:
    """-S: without the site-packages that this interpreter has, which stand for the server's own."""
    package = Path(tempa.__file__).parent
    said = subprocess.run(
        [sys.executable, "-S", "-P", "-c", PROOF, str(START), str(package)],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={},
    ).stdout.split()
    assert said == ["None", str(package / "core" / "errors.py"), tempa.__version__]
