from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest

from tempa.engines.host.bounds import Bounds
from tempa.engines.host.outcome import Ending, Verdict, judge, made_files
from tempa.engines.host.protocol import Done, Fault, ProtocolError, Raised
from tempa.jobs.ports import Broke, Made, MadeFile

BOUNDS = Bounds(timeout_seconds=60.0, memory_bytes=1000, address_space_bytes=10_000, cpu_seconds=65)
SILENT = Ending(
    bounds=BOUNDS,
    last_word=None,
    verdict=None,
    exit_code=0,
    wall_seconds=2.5,
    cpu_seconds=2.0,
    peak_rss_bytes=800,
    peak_size_bytes=5_000,
    output_tail="",
)
KILLED = -signal.SIGKILL
FILE = {"name": "model.step", "role": "step", "file_format": "step", "media_type": "model/step"}
DONE = Done([FILE], {"volume": 1.5}, wall_seconds=0.25, peak_rss_bytes=800, alone=True)
RAISED = Raised("FILLET_FAILED", "Too round.", False, None, {"feature": "rim"}, wall_seconds=0.25)


def broke(**known: Any) -> Broke:
    outcome = judge(replace(SILENT, **known))
    assert isinstance(outcome, Broke)
    return outcome


def test_a_report_is_an_outcome_with_the_time_the_engine_took() -> None:
    made = Made((MadeFile(**FILE),), {"volume": 1.5}, compute_time_ms=250, peak_rss_bytes=800)
    assert judge(replace(SILENT, last_word=DONE)) == made


def test_a_process_that_left_no_word_is_charged_its_whole_life() -> None:
    assert broke(exit_code=-signal.SIGSEGV).compute_time_ms == 2500
    assert broke(last_word=RAISED).compute_time_ms == 250


@pytest.mark.parametrize("verdict", [Verdict.TIMEOUT, Verdict.MEMORY, Verdict.CLOSED])
def test_a_last_word_counts_even_if_a_limit_struck_at_the_same_moment(verdict: Verdict) -> None:
    assert isinstance(judge(replace(SILENT, last_word=DONE, verdict=verdict, exit_code=KILLED)), Made)
    assert broke(last_word=RAISED, verdict=verdict, exit_code=KILLED).error.code == "FILLET_FAILED"


@pytest.mark.parametrize(
    ("known", "code"),
    [
        ({"verdict": Verdict.TIMEOUT, "exit_code": -signal.SIGKILL}, "KERNEL_TIMEOUT"),
        ({"verdict": Verdict.MEMORY, "exit_code": -signal.SIGKILL}, "OUT_OF_MEMORY"),
        ({"verdict": Verdict.MEMORY, "exit_code": -signal.SIGSEGV}, "OUT_OF_MEMORY"),
        ({"verdict": Verdict.GARBAGE, "exit_code": -signal.SIGKILL}, "KERNEL_CRASHED"),
        ({"verdict": Verdict.CLOSED, "exit_code": -signal.SIGKILL}, "WORKER_LOST"),
        ({"exit_code": None}, "WORKER_LOST"),
        ({"verdict": Verdict.TIMEOUT, "exit_code": None}, "KERNEL_TIMEOUT"),
        ({"exit_code": 0}, "KERNEL_CRASHED"),
        ({"exit_code": 3}, "KERNEL_CRASHED"),
        ({"exit_code": -signal.SIGXCPU}, "KERNEL_TIMEOUT"),
        ({"exit_code": -signal.SIGKILL}, "KERNEL_CRASHED"),
        ({"exit_code": -signal.SIGKILL, "cpu_seconds": 65.1}, "KERNEL_TIMEOUT"),
        ({"exit_code": -signal.SIGSEGV}, "KERNEL_CRASHED"),
        ({"exit_code": -signal.SIGSEGV, "cpu_seconds": 65.1}, "KERNEL_CRASHED"),
        ({"exit_code": -signal.SIGSEGV, "peak_size_bytes": 9_600}, "OUT_OF_MEMORY"),
        ({"exit_code": -signal.SIGABRT, "peak_size_bytes": 9_600}, "OUT_OF_MEMORY"),
        ({"exit_code": -signal.SIGSEGV, "peak_rss_bytes": 1_001}, "OUT_OF_MEMORY"),
        ({"exit_code": -signal.SIGFPE, "peak_size_bytes": 9_600}, "KERNEL_CRASHED"),
        ({"last_word": Fault("Traceback", 0.1)}, "INTERNAL"),
        ({"last_word": Raised("NO_SUCH_CODE", "", False, None, {}, None)}, "KERNEL_CRASHED"),
    ],
)
def test_how_a_process_ended_gives_the_code(known: dict[str, Any], code: str) -> None:
    assert broke(**known).error.code == code


def test_a_crash_names_its_signal() -> None:
    assert broke(exit_code=-signal.SIGSEGV).error.detail == {"signal": "SIGSEGV"}
    assert broke(exit_code=-40).error.detail == {"signal": "signal 40"}


def test_a_kill_from_outside_says_what_to_look_for() -> None:
    hint = broke(exit_code=-signal.SIGKILL).error.hint
    assert hint is not None
    assert "memory" in hint


@pytest.mark.parametrize(
    "known",
    [
        {"exit_code": -signal.SIGSEGV},
        {"exit_code": 3},
        {"verdict": Verdict.TIMEOUT},
        {"verdict": Verdict.MEMORY},
        {"verdict": Verdict.GARBAGE},
    ],
)
def test_what_the_kernel_printed_stands_in_detail_kernel_and_nowhere_else(known: dict[str, Any]) -> None:
    error = broke(output_tail="Standard_Failure in /opt/occt", **known).error
    assert error.detail.pop("kernel") == "Standard_Failure in /opt/occt"
    assert "occt" not in f"{error.message} {error.hint} {error.detail}"


def test_a_fault_shows_its_reference_and_not_its_trace() -> None:
    error = broke(last_word=Fault("Traceback: secret", 0.1), reference="log_1", output_tail="secret").error
    assert error.detail == {"reference": "log_1"}
    assert "secret" not in f"{error.message} {error.hint}"


def test_memory_that_ran_out_inside_the_engine_names_the_limit_too() -> None:
    error = broke(last_word=Raised("OUT_OF_MEMORY", "Full.", False, None, {}, None)).error
    assert error.detail == {"memory_bytes": 1000, "peak_rss_bytes": 800}


@pytest.mark.parametrize(
    "entry",
    [
        {**FILE, "name": "../model.step"},
        {**FILE, "name": "/etc/passwd"},
        {**FILE, "name": ".."},
        {**FILE, "name": ""},
        {**FILE, "name": "a\0b"},
        {**FILE, "name": 7},
        {**FILE, "more": "x"},
        {"name": "model.step"},
        "model.step",
        None,
    ],
)
def test_a_file_that_is_not_in_the_folder_is_not_believed(entry: Any) -> None:
    with pytest.raises(ProtocolError):
        made_files([FILE, entry])
