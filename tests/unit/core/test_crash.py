"""A crash point is nothing until the process is told to die there; then it dies there, once."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tempa.core.crash import VARIABLE, crash_points


def deaths(told: str | None, *passed: str) -> list[int]:
    """At which passages, counted from 1, it died."""
    died: list[int] = []
    crash_point = crash_points(told, lambda: died.append(number))
    for number, label in enumerate(passed, start=1):  # noqa: B007 - read in the lambda
        crash_point(label)
    return died


@pytest.mark.parametrize("told", [None, ""])
def test_a_crash_point_is_nothing_in_normal_use(told: str | None) -> None:
    assert deaths(told, "settle.asked", "") == []


@pytest.mark.parametrize(("told", "at"), [("a.b", [2]), ("a.b:1", [2]), ("a.b:2", [4]), ("a.b:3", [])])
def test_a_process_dies_at_the_passage_it_is_told_and_at_no_other(told: str, at: list[int]) -> None:
    assert deaths(told, "a.c", "a.b", "b", "a.b", "a.b.c") == at


def test_of_many_threads_that_pass_at_once_one_dies() -> None:
    died: list[int] = []
    crash_point = crash_points("a.b:50", lambda: died.append(threading.get_ident()))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(crash_point, ["a.b"] * 200))
    assert len(died) == 1


@pytest.mark.parametrize("told", ["a.b:0", "a.b:-1", "a.b:often"])
def test_a_passage_that_never_comes_is_refused(told: str) -> None:
    with pytest.raises(ValueError, match=r"counted from 1|invalid literal"):
        crash_points(told, lambda: None)


def test_the_process_is_killed_and_nothing_of_it_runs_on() -> None:
    program = (
        "from tempa.core.crash import crash_point\n"
        "try:\n    crash_point('a.b')\nfinally:\n    print('still here', flush=True)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env={VARIABLE: "a.b"}, capture_output=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (-9, b"")
