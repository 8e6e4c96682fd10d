"""An attempt as the host sees it, with the test at its child's end: what a real one does only by chance."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tempa.engines.host.attempt import LEAVER_BYTES_MAX, Attempt
from tempa.engines.host.bounds import Bounds
from tempa.engines.host.control_line import receive_with_descriptor
from tempa.engines.host.protocol import Done, Exited, Raised, Stage, frame
from tempa.engines.host.seat import Seat
from tempa.jobs.ports import Broke, Made, MadeFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOUNDS = Bounds(timeout_seconds=60.0, memory_bytes=1 << 40, address_space_bytes=1 << 40, cpu_seconds=65)
PATIENCE_SECONDS = 5.0
FILE = {"name": "model.step", "role": "step", "file_format": "step", "media_type": "model/step"}


def exited(code: int = 0) -> Exited:
    return Exited(1, code, cpu_seconds=0.4, peak_rss_bytes=1000)


def done(name: str = "model.step", *, alone: bool = True, peak_rss_bytes: int = 900) -> Done:
    return Done([{**FILE, "name": name}], {"volume": 1.5}, 0.25, peak_rss_bytes, alone)


def ignore(stage: str, fraction: float | None) -> None:
    pass


class Scene:
    """An attempt, the numbers it had killed, and the child's end of its channel."""

    def __init__(self, order: Any) -> None:
        self.stages: list[str] = []
        self.killed: list[int] = []
        self.kill_asked = asyncio.Event()
        self.staged = asyncio.Event()
        self.seat = Seat(self._kill)
        self.attempt = Attempt(order, BOUNDS, self._note, self.seat)
        (channel,) = self.seat.descriptors()
        self.child = socket.socket(fileno=os.dup(channel))
        # What is watched: not the test's own process, which may well be larger than any bound in here.
        self._watched = subprocess.Popen(["cat"], stdin=subprocess.PIPE)

    def _note(self, stage: str, fraction: float | None) -> None:
        self.stages.append(stage)
        self.staged.set()

    def _kill(self, number: int) -> None:
        self.killed.append(number)
        self.kill_asked.set()

    def begin(self) -> None:
        self.seat.begin(self._watched.pid, os.pidfd_open(self._watched.pid))

    async def end(self, how: Exited) -> Made | Broke:
        """The outcome, when the zygote has told how the child ended."""
        self.seat.end(how)
        await asyncio.wait_for(self.attempt.known, PATIENCE_SECONDS)
        return self.attempt.outcome()

    def close(self) -> None:
        self.attempt.close()
        self.child.close()
        self._watched.communicate(timeout=PATIENCE_SECONDS)  # the end of its input is its end


@pytest.fixture
async def scene(make_order: Any) -> AsyncIterator[Scene]:
    scene = Scene(make_order("make", text="x"))
    yield scene
    scene.close()


async def test_what_a_child_said_last_is_heard_even_if_its_death_is_heard_first(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(frame(Stage("export", None)) + frame(done()))
    scene.seat.end(exited())  # no turn of the loop in between
    assert isinstance(scene.attempt.outcome(), Made)
    assert scene.stages == ["export"]


async def test_a_report_ends_the_attempt_and_not_the_child(scene: Scene) -> None:
    scene.begin()
    report = done(peak_rss_bytes=LEAVER_BYTES_MAX)
    scene.child.sendall(frame(report))
    assert await asyncio.wait_for(scene.attempt.known, PATIENCE_SECONDS) == report
    assert not scene.attempt.ended.done()
    outcome = scene.attempt.outcome()
    assert isinstance(outcome, Made)
    assert (outcome.compute_time_ms, outcome.peak_rss_bytes) == (250, LEAVER_BYTES_MAX)


@pytest.mark.parametrize(
    "report", [done(alone=False), done(peak_rss_bytes=LEAVER_BYTES_MAX + 1)], ids=["company", "large"]
)
async def test_who_has_company_or_much_to_free_is_waited_for(scene: Scene, report: Done) -> None:
    scene.begin()
    scene.child.sendall(frame(report) + frame(Stage("after", None)))
    await asyncio.wait_for(scene.staged.wait(), PATIENCE_SECONDS)
    assert not scene.attempt.known.done()
    assert await scene.end(exited()) == Made(
        (MadeFile(**FILE),), {"volume": 1.5}, compute_time_ms=250, peak_rss_bytes=1000
    )


@pytest.mark.parametrize("code", [0, -11])
async def test_how_a_child_leaves_changes_nothing_but_the_log(
    scene: Scene, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    scene.begin()
    scene.child.sendall(frame(done()))
    await asyncio.wait_for(scene.attempt.known, PATIENCE_SECONDS)
    leaving = asyncio.create_task(scene.attempt.see_off(leave_seconds=60.0))
    scene.seat.end(exited(code))
    await asyncio.wait_for(leaving, PATIENCE_SECONDS)
    assert [vars(record)["exit_code"] for record in caplog.records] == [code] * (code != 0)
    assert scene.killed == []


async def test_who_does_not_leave_is_killed(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(frame(done()))
    await asyncio.wait_for(scene.attempt.known, PATIENCE_SECONDS)
    leaving = asyncio.create_task(scene.attempt.see_off(leave_seconds=0.01))
    await asyncio.wait_for(scene.kill_asked.wait(), PATIENCE_SECONDS)
    assert scene.killed == [scene.seat.number]
    scene.seat.end(exited(-9))
    await asyncio.wait_for(leaving, PATIENCE_SECONDS)


async def test_a_file_outside_the_folder_is_garbage(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(frame(done("../../etc/passwd")))
    await asyncio.wait_for(scene.kill_asked.wait(), PATIENCE_SECONDS)
    assert scene.killed == [scene.seat.number]
    outcome = await scene.end(exited(-9))
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "KERNEL_CRASHED"


async def test_the_first_last_word_stands(scene: Scene) -> None:
    scene.begin()
    raised = Raised("FILLET_FAILED", "Too round.", False, None, {}, 0.25)
    scene.child.sendall(frame(raised) + frame(done()))
    outcome = await scene.end(exited())
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "FILLET_FAILED"


async def test_a_child_is_killed_once(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(b"\xff" * 8)
    scene.seat.end(exited(-11))
    scene.child.sendall(b"\xff" * 8)
    assert scene.killed == [scene.seat.number]


async def test_the_task_is_sent_when_the_child_is_known_and_not_before(scene: Scene) -> None:
    scene.child.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.child.recv(1)
    scene.begin()
    task, output = receive_with_descriptor(scene.child, 65_536)
    assert b'"do":"make"' in task
    assert output is not None
    os.write(output, b"the end")
    os.close(output)
    outcome = await scene.end(exited(-11))
    assert isinstance(outcome, Broke)
    assert outcome.error.detail == {"signal": "SIGSEGV", "kernel": "the end"}


async def test_a_child_that_waits_gets_its_task_at_once(make_order: Any) -> None:
    seat = Seat(lambda number: None)
    child = socket.socket(fileno=os.dup(*seat.descriptors()))
    seat.begin(os.getpid(), os.pidfd_open(os.getpid()))
    with contextlib.closing(child), contextlib.closing(Attempt(make_order("make"), BOUNDS, ignore, seat)):
        assert b'"do":"make"' in child.recv(65_536)


async def test_a_child_that_died_before_it_was_known_is_still_waited_for(scene: Scene) -> None:
    """Its number is free again: there is nothing to watch, and its zygote will tell how it ended."""
    scene.seat.begin(2**22 + 1, os.pidfd_open(os.getpid()))
    assert not scene.attempt.known.done()
    outcome = await scene.end(exited(-11))
    assert isinstance(outcome, Broke)
    assert outcome.error.detail == {"signal": "SIGSEGV"}
