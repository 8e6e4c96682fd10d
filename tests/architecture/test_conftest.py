"""The laws of the test house hold: a skip in CI fails the run, a unit test gets no socket."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]

SKIPS = """
import pytest
def test_skips_itself(): pytest.skip("no kettle")
@pytest.mark.skip(reason="no kettle")
def test_is_marked(): ...
@pytest.mark.allowed_skip("no kettle on earth")
def test_may_skip(): pytest.skip("no kettle")
@pytest.mark.xfail(reason="known")
def test_is_known_to_fail(): assert False
"""
SKIPS_ALL = "import pytest\npytest.skip('no kettle', allow_module_level=True)\n"
CALLS_OUT = """
import socket
def test_calls_out():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).close()
    server.close()
async def test_runs_a_loop(): ...
"""


class Run:
    """What came of one run of pytest: its exit code, and the outcome of each test."""

    def __init__(self, process: subprocess.CompletedProcess[str]) -> None:
        self.code = process.returncode
        self.output = process.stdout
        lines = re.findall(r"(\w+/test_\w+\.py\S*) ([A-Z]+)", process.stdout)
        self.outcomes = {test.removeprefix("rooms/"): outcome for test, outcome in lines}


@pytest.fixture(scope="module")
def run_house(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run a tiny house of tests that has our conftest and our settings."""
    tests = tmp_path_factory.mktemp("tests")
    shutil.copy(ROOT / "tests/conftest.py", tests)
    for room, source in {
        "unit": CALLS_OUT,
        "integration": CALLS_OUT,
        "scenario": SKIPS,
        "chaos": SKIPS_ALL,
    }.items():
        (tests / room).mkdir()
        (tests / room / f"test_{room}.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-v", "--continue-on-collection-errors"]
    command += ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tests), "-p", "no:cacheprovider"]
    command += ["-p", "pytest_asyncio.plugin", str(tests)]
    clean = {name: value for name, value in os.environ.items() if name != "CI"}
    clean["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # 0.4 s a run instead of 1.5

    def run(**environment: str) -> Run:
        process = subprocess.run(
            command, env=clean | environment, capture_output=True, text=True, timeout=60, check=False
        )
        return Run(process)

    return run


def test_in_ci_a_skip_fails_the_run_unless_it_is_allowed(run_house: Callable[..., Run]) -> None:
    run = run_house(CI="true")

    assert run.code == 1
    assert run.outcomes["scenario/test_scenario.py::test_skips_itself"] == "FAILED"
    assert run.outcomes["scenario/test_scenario.py::test_is_marked"] == "ERROR"
    assert run.outcomes["scenario/test_scenario.py::test_may_skip"] == "SKIPPED"
    assert run.outcomes["scenario/test_scenario.py::test_is_known_to_fail"] == "XFAIL"
    assert re.search(r"ERROR collecting \S*chaos/test_chaos.py", run.output)
    assert run.output.count("no kettle - but in CI a skip is a failure") >= len(("call", "mark", "module"))


def test_on_a_laptop_a_skip_is_a_skip_and_a_unit_test_gets_no_socket(run_house: Callable[..., Run]) -> None:
    run = run_house()

    assert run.outcomes["unit/test_unit.py::test_calls_out"] == "FAILED"
    assert "a unit test opens no sockets" in run.output
    assert run.outcomes["unit/test_unit.py::test_runs_a_loop"] == "PASSED"
    assert run.outcomes["integration/test_integration.py::test_calls_out"] == "PASSED"
    assert run.outcomes["scenario/test_scenario.py::test_skips_itself"] == "SKIPPED"
    assert "1 failed, 3 passed, 4 skipped, 1 xfailed" in run.output
