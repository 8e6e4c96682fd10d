"""Takes the guards out, one at a time, and sees whether a test notices.

A mutant is a record in `tests/mutants/*.toml`: a guard of the product, and how to take it out.

    [[mutant]]
    name = "complete-ignores-the-epoch"
    guard = "a worker whose lease was lost publishes nothing"
    file = "src/tempa/adapters/stores/sql/jobs.sql"
    find = "and epoch = :epoch"        # must occur exactly once
    replace = ""
    tests = ["tests/contract/test_job_store.py"]  # the fewest that should notice: each is run

Each is applied to a copy of the tree, where its tests are run. The run fails when a mutant
survives its tests, when a record no longer fits the code, and when tests could not be run at all
(they would "notice" anything). Nothing in the checkout itself is changed.

    python tools/mutants.py [--list] [NAME ...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from house import listed_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Process = subprocess.Popen[str]

ROOT = Path(__file__).resolve().parents[1]
RECORDS = Path("tests/mutants")

# A mutant may turn a bounded wait into an endless one: it gets a multiple of what the untouched
# tests took, and at least a minute, since machines stall.
PATIENCE_FACTOR = 10
PATIENCE_SECONDS_MIN = 60.0
UNTOUCHED_SECONDS_MAX = 1800.0

_PASSED, _FAILED = 0, 1  # exit codes of pytest; all others mean that tests did not run as asked
_TIMED_OUT = -1


@dataclass(frozen=True, slots=True)
class Mutant:
    """One guard, and how to take it out."""

    name: str
    guard: str
    file: str
    find: str
    replace: str
    tests: tuple[str, ...]


class Verdict(StrEnum):
    """What became of a mutant. A test that never ends is a test that noticed: its run is cut off."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "SURVIVED"
    UNDECIDED = "UNDECIDED"


class RecordError(ValueError):
    """A record that cannot be read."""


def read_mutants(folder: Path) -> list[Mutant]:
    """All records under `folder`, by file name and in the order of each file."""
    mutants = []
    for path in sorted(folder.glob("*.toml")):
        for record in tomllib.loads(path.read_text()).pop("mutant", []):
            if record.keys() != {field.name for field in fields(Mutant)}:
                expected = ", ".join(field.name for field in fields(Mutant))
                raise RecordError(f"{path.name}: a mutant has {expected}; this one: {', '.join(record)}")
            mutants.append(Mutant(**{**record, "tests": tuple(record["tests"])}))
    return mutants


def problems(mutants: Sequence[Mutant], root: Path) -> list[str]:
    """Everything that makes a record unfit for the tree under `root`, without running a test."""
    names = [mutant.name for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"{name}: two mutants have this name" for name in twice] + [
        f"{mutant.name}: {problem}" for mutant in mutants for problem in _unfit(mutant, root)
    ]


def _unfit(mutant: Mutant, root: Path) -> list[str]:
    path = root / mutant.file
    count = path.read_text().count(mutant.find) if path.is_file() and mutant.find else 0
    found = [] if count == 1 else [f"its text occurs {count} times in {mutant.file}, not once"]
    if mutant.find == mutant.replace:
        found.append("it changes nothing")
    if not mutant.tests:
        found.append("it names no tests")
    missing = [test for test in mutant.tests if not (root / test.partition("::")[0]).exists()]
    return found + [f"there is no {test}" for test in missing]


def copy_tree(root: Path, into: Path) -> None:
    """Copy what is written, tracked or not, and nothing that was made."""
    for path in listed_files(root):
        target = into / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)


def try_mutant(mutant: Mutant, tree: Path, timeout_seconds: float) -> tuple[Verdict, str]:
    """Apply the mutant to `tree`, run its tests there, take it back; the verdict and pytest's words."""
    path = tree / mutant.file
    original = path.read_text()
    path.write_text(original.replace(mutant.find, mutant.replace))
    forget_compiled(path, tree)
    try:
        code, output = run_tests(tree, mutant.tests, timeout_seconds)
    finally:
        path.write_text(original)
        forget_compiled(path, tree)
    verdicts = {_PASSED: Verdict.SURVIVED, _FAILED: Verdict.KILLED, _TIMED_OUT: Verdict.TIMED_OUT}
    return verdicts.get(code, Verdict.UNDECIDED), output


def forget_compiled(path: Path, tree: Path) -> None:
    """Delete numba's caches if kernels lie beside `path`: a cache knows its own file, not what it took in.

    With them, an alpha cut that a kernel takes from another file went unnoticed.
    """
    if any((path.parent / "__pycache__").glob("*.nbi")):
        for cache in tree.rglob("*.nb[ic]"):
            cache.unlink()


def run_tests(tree: Path, tests: Sequence[str], timeout_seconds: float) -> tuple[int, str]:
    """Run `tests` in `tree` against the package in `tree`; pytest's exit code (-1: cut off) and output."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree / "src"),  # goes before the installed package, in child processes too
        # Two versions of a file in the same second and of the same size share a .pyc: write none.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
    process = start(command, tree, environment)
    try:
        output, _ = process.communicate(timeout=timeout_seconds)
    except subprocess.TimeoutExpired:
        kill(process)
        return _TIMED_OUT, f"cut off after {timeout_seconds:g} s"
    return process.returncode, output


def start(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Process:
    """Start a command in a session of its own, so that it can be killed with all its children."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def kill(process: Process) -> None:
    """Kill a started command and its children, and reap it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def run_all(mutants: Sequence[Mutant], root: Path) -> bool:
    """Try every mutant and tell what became of each; whether all of them were noticed."""
    with tempfile.TemporaryDirectory(prefix="tempa-mutants-") as folder:
        tree = Path(folder)
        copy_tree(root, tree)
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        started = time.monotonic()
        code, output = run_tests(tree, tests, UNTOUCHED_SECONDS_MAX)
        if code != _PASSED:
            print(f"{output}\nThe tests fail without any mutant; no verdict would mean anything.")
            return False
        patience = max(PATIENCE_SECONDS_MIN, PATIENCE_FACTOR * (time.monotonic() - started))
        verdicts = [_tell(mutant, tree, patience) for mutant in mutants]
    noticed = sum(verdict in {Verdict.KILLED, Verdict.TIMED_OUT} for verdict in verdicts)
    print(f"{len(mutants)} mutants, {noticed} noticed by the tests, {len(mutants) - noticed} not")
    return noticed == len(mutants)


def _tell(mutant: Mutant, tree: Path, timeout_seconds: float) -> Verdict:
    started = time.monotonic()
    verdict, output = try_mutant(mutant, tree, timeout_seconds)
    took = time.monotonic() - started
    print(f"{verdict:<10} {took:5.1f} s  {mutant.name}: {mutant.guard}", flush=True)
    if verdict is Verdict.UNDECIDED:
        print(output)
    return verdict


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Exit code 0: all noticed; 1: a survivor, or no verdict; 2: records that do not fit the tree."""
    parser = argparse.ArgumentParser(description="Take the guards out, one at a time.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants")
    parser.add_argument("--list", action="store_true", help="print the records and stop")
    options = parser.parse_args(arguments)
    mutants = read_mutants(root / RECORDS)
    unfit = problems(mutants, root)
    unfit += [f"{name}: no such mutant" for name in options.names if name not in {m.name for m in mutants}]
    if unfit or not mutants:
        print(*(unfit or [f"no records in {RECORDS}"]), sep="\n")
        return 2
    chosen = [mutant for mutant in mutants if not options.names or mutant.name in options.names]
    if options.list:
        print(*(f"{mutant.name}: {mutant.guard}" for mutant in chosen), sep="\n")
        return 0
    return 0 if run_all(chosen, root) else 1


if __name__ == "__main__":
    sys.exit(main())
