"""What hostile pictures can do to a child: nothing but end with a code, soon and in little memory."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tempa.core.errors import CODES, TempaError
from tempa.engines.splat.image import door, intake
from tempa.engines.splat.image.facts import Fault
from tests.integration.splat.image.hostile_images import READ, Hostile, corpus

if TYPE_CHECKING:
    from pathlib import Path

RSS_BYTES_MAX = 512 * 1024 * 1024  # beyond what the child began with
ADDRESS_SPACE_BYTES = 4 * 1024**3
CPU_SECONDS = 20
WALL_SECONDS_MAX = 60.0  # machines are shared: it only has to end
PARTS = 4


@dataclass(frozen=True)
class Ending:
    """How a child ended: `code` is what it said, None if it said nothing."""

    code: str | None
    peak_bytes: int
    signal: int
    door_code: str | None


def read(hostile: Hostile, path: Path) -> Ending:
    path.write_bytes(hostile.data)
    looked = door.look(path)
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        live(path, telling)
    os.close(telling)
    ended = os.pidfd_open(pid)
    in_time = bool(select.select([ended], [], [], WALL_SECONDS_MAX)[0])
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(told, "rb") as pipe:
        code, peak_bytes = json.loads(pipe.read() or b"[null, 0]")
    os.close(ended)
    door_code = looked.code if isinstance(looked, Fault) else None
    return Ending(code, peak_bytes, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, door_code)


def live(path: Path, telling: int) -> None:
    """In the child: read the picture under limits, tell how that ended, and be gone."""
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    try:
        code = ending_of(path)
        peak_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) * 1024
        os.write(telling, json.dumps([code, peak_bytes]).encode())
    finally:
        os._exit(0)


def ending_of(path: Path) -> str:
    try:
        intake.read(path, {})
    except TempaError as error:
        return error.code
    except MemoryError:
        return "OUT_OF_MEMORY"  # as the host of a child says it
    except BaseException as error:  # noqa: BLE001 - what came is what the test wants to know
        return repr(error)
    return READ


def faults(hostile: Hostile, ending: Ending) -> list[str]:
    """What is wrong with how a picture ended."""
    code = ending.code
    wrong = {
        f"died of signal {ending.signal}": ending.signal != 0,
        "said nothing": code is None,
        f"ended with {code}, not with one of {hostile.codes}": code not in hostile.codes,
        f"ended with {code}, which is no code": code not in (READ, *CODES),
        f"took {ending.peak_bytes >> 20} MiB": ending.peak_bytes > RSS_BYTES_MAX,
        f"is {code} within, {ending.door_code} at the door": ending.door_code not in (None, code),
    }
    return [f"{hostile.name} {what}" for what, is_so in wrong.items() if is_so]


def test_there_are_more_than_two_hundred() -> None:
    assert len(corpus()) > 200


@pytest.mark.parametrize("part", range(PARTS))
def test_each_ends_alive_with_a_fitting_code_and_in_little_memory(tmp_path: Path, part: int) -> None:
    """All of it in one test: a picture's ending is dear, and test processes share nothing."""
    intake.prepare()
    pictures = corpus()[part::PARTS]
    endings = [(one, read(one, tmp_path / "image")) for one in pictures]
    assert not [fault for one, ending in endings for fault in faults(one, ending)]


@pytest.mark.parametrize(
    "ending",
    [
        Ending(None, 0, signal.SIGSEGV, None),
        Ending("KeyError(7)", 0, 0, None),
        Ending(READ, RSS_BYTES_MAX + 1, 0, None),
        Ending(READ, 0, 0, "IMAGE_TOO_LARGE"),
    ],
    ids=["death", "no-code", "memory", "door"],
)
def test_what_may_not_be_is_seen(ending: Ending) -> None:
    assert faults(Hostile("picture", b"", (READ, "IMAGE_TOO_LARGE")), ending)


def test_a_child_that_dies_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "read", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    assert read(corpus()[0], tmp_path / "image").signal == signal.SIGKILL


def test_the_door_is_quick_whatever_comes(tmp_path: Path) -> None:
    """CPU time: others work on the machine too."""
    path = tmp_path / "image"
    slow = {}
    for one in corpus():
        path.write_bytes(one.data)
        began = time.thread_time()
        door.look(path)
        if (seconds := time.thread_time() - began) > 0.25:
            slow[one.name] = seconds
    assert not slow
