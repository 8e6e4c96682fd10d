from __future__ import annotations

import hashlib
import logging
import math
from typing import TYPE_CHECKING, Any

import pytest

from tempa.jobs.ports import Broke, Made, MadeFile, Order, RunLimits
from tests.integration.host.zygotes import zygote_pids

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.core.errors import TempaError
    from tempa.engines.host.engine_host import EngineHost

MIB = 1024 * 1024
DEATH_SECONDS = 2.0


def error_of(outcome: Made | Broke) -> TempaError:
    assert isinstance(outcome, Broke), outcome
    return outcome.error


async def test_an_attempt_gives_back_what_the_engine_reported(run: Any, watcher: Any, tmp_path: Path) -> None:
    made = await run("make", text="größer")
    assert isinstance(made, Made)
    assert made.files == (
        MadeFile("model.txt", "model", "txt", "text/plain"),
        MadeFile("relative.txt", "model", "txt", "text/plain"),
    )
    assert made.measurements == {"length": 6, "volume": math.pi}
    assert (tmp_path / "model.txt").read_text(encoding="utf-8") == "größer"
    assert (tmp_path / "relative.txt").read_text(encoding="utf-8") == "in the attempt's folder"
    assert watcher.stages == [("begun", None), ("build", 0.25), ("export", 0.75)]
    assert watcher.processes.gone("begun", DEATH_SECONDS)


async def test_time_and_memory_of_an_attempt_are_its_own(run: Any) -> None:
    small = await run("make", text="x")
    large = await run("stay_below", bytes=100 * MIB)
    assert 1 * MIB < small.peak_rss_bytes < 100 * MIB
    assert small.peak_rss_bytes + 100 * MIB < large.peak_rss_bytes < small.peak_rss_bytes + 230 * MIB
    assert large.compute_time_ms >= 100  # it waits that long
    assert small.compute_time_ms < 100


async def test_a_file_that_c_code_left_open_is_whole(run: Any, tmp_path: Path) -> None:
    assert isinstance(await run("leave_open_in_c"), Made)
    assert (tmp_path / "model.txt").read_text(encoding="utf-8") == "buffered"


async def test_work_of_megabytes_arrives_whole(run: Any) -> None:
    text = "ab" * (2 * MIB)
    made = await run("echo", text=text)
    assert made.measurements == {"sha256": hashlib.sha256(text.encode()).hexdigest()}


async def test_an_error_with_a_code_keeps_every_part(run: Any) -> None:
    error = error_of(await run("raise_tempa"))
    assert (error.code, error.message, error.retryable, error.hint) == (
        "FILLET_FAILED",
        "Too round.",
        True,
        "Less.",
    )
    assert error.detail == {"feature": "rim", "max": 2.5}


@pytest.mark.parametrize(
    ("act", "work", "in_the_log"),
    [
        ("raise_value", {}, "ValueError: a secret path: /srv/secret"),
        ("exit_politely", {}, "SystemExit: 3"),
        ("huge_report", {"bytes": 9 * MIB}, "MessageTooLarge"),
        ("unwritten", {"name": "model.txt"}, "FileNotFoundError"),
        ("unwritten", {"name": "../../etc/passwd"}, "FileNotFoundError"),
        ("not_a_number", {}, "ValueError: Out of range float values are not JSON compliant"),
        ("grow_a_file", {"bytes": 5 << 30}, "File too large"),
    ],
)
async def test_a_fault_goes_to_the_log_and_only_its_reference_to_the_client(
    run: Any, caplog: pytest.LogCaptureFixture, act: str, work: dict[str, Any], in_the_log: str
) -> None:
    error = error_of(await run(act, **work))
    assert error.code == "INTERNAL"
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    logged = vars(record)
    assert in_the_log in logged["trace"]
    assert error.detail == {"reference": logged["reference"]}
    assert logged["reference"].startswith("log_")
    assert "Error" not in error.message


async def test_a_report_just_below_the_bound_arrives(run: Any) -> None:
    made = await run("huge_report", bytes=7 * MIB)
    assert made.measurements == {"text": "x" * (7 * MIB)}


@pytest.mark.parametrize("name", ["SIGABRT", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGTERM", "SIGKILL", "SIGINT"])
async def test_a_signal_is_a_crash_with_its_name(run: Any, watcher: Any, name: str) -> None:
    error = error_of(await run("kill_self", signal=name))
    assert (error.code, error.retryable, error.detail) == ("KERNEL_CRASHED", True, {"signal": name})
    assert watcher.processes.gone("begun")


async def test_a_crash_keeps_the_last_words_of_the_kernel(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # the host's own doing, not the machine's
    error = error_of(await run("segfault"))
    assert error.code == "KERNEL_CRASHED"
    assert error.detail == {"signal": "SIGSEGV", "kernel": "about to fall\nsaid by C"}


async def test_the_cpu_limit_is_a_timeout(run: Any) -> None:
    error = error_of(await run("kill_self", signal="SIGXCPU", timeout_seconds=17.0))
    assert (error.code, error.detail) == ("KERNEL_TIMEOUT", {"timeout_seconds": 17.0})


async def test_leaving_without_a_report_is_a_crash(run: Any) -> None:
    error = error_of(await run("exit_at_once"))
    assert (error.code, error.detail) == ("KERNEL_CRASHED", {"exit_code": 3})
    assert "without a report" in error.message


@pytest.mark.parametrize("garbage", ["ffffffff00", "0000000441414141", "000000027b7d"])
async def test_a_process_that_talks_nonsense_is_killed_at_once(run: Any, watcher: Any, garbage: str) -> None:
    outcome = await run("speak_garbage", hex=garbage)
    assert error_of(outcome).code == "KERNEL_CRASHED"
    assert outcome.compute_time_ms < 5_000  # it spins; its own time limit is 20 s
    assert watcher.processes.gone("begun")


async def test_what_an_engine_prints_stays_out_of_the_servers_output(
    run: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(await run("print_garbage", times=100), Made)
    assert capfd.readouterr() == ("", "")


async def test_what_an_engine_prints_is_bounded_in_an_error(run: Any) -> None:
    kernel = error_of(await run("print_garbage", times=100, then="abort")).detail["kernel"]
    assert kernel.endswith("the end")
    assert len(kernel) <= 4096
    assert not any(ord(character) < 32 and character not in "\n\t" for character in kernel)


async def test_an_engine_that_prints_without_end_does_not_fill_the_disk(run: Any) -> None:
    made = await run("print_until_trimmed", timeout_seconds=5.0)
    assert isinstance(made, Made)
    assert made.measurements["disk_bytes"] < MIB


async def test_progress_in_an_inner_loop_is_thinned_out(run: Any, watcher: Any) -> None:
    made = await run("chatter", times=300_000)
    loops = [fraction for stage, fraction in watcher.stages if stage == "loop"]
    assert loops[0] == 0.0
    assert loops == sorted(loops)
    assert len(loops) <= 1 + made.compute_time_ms / 50


async def test_a_progress_callback_that_fails_fails_nothing_else(run: Any) -> None:
    def fail(stage: str, fraction: float | None) -> None:
        raise RuntimeError(stage)

    assert isinstance(await run("make", text="x", progress=fail), Made)


async def test_an_unknown_life_cycle_is_an_engine_that_does_not_run_here(
    host: EngineHost, tmp_path: Path
) -> None:
    order = Order("m", "wild_engine", "spawn", {"do": "make"}, tmp_path, RunLimits(1.0, MIB))
    error = error_of(await host.run(order, lambda stage, fraction: None))
    assert error.code == "ENGINE_UNAVAILABLE"
    assert zygote_pids() == []


async def test_work_that_is_not_json_is_our_own_fault(run: Any) -> None:
    with pytest.raises(TypeError):
        await run("echo", text=b"bytes")
