"""An attempt as the host sees it, with the test as its child: what a real one does only by chance."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tempa.engines.host.attempt import Attempt
from tempa.engines.host.bounds import Bounds
from tempa.engines.host.protocol import Done, Exited, Raised, Stage, frame
from tempa.jobs.ports import Broke, Made

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOUNDS = Bounds(timeout_seconds=60.0, memory_bytes=1 << 40, address_space_bytes=1 << 40, cpu_seconds=65)
FILE = {"name": "model.step", "role": "step", "file_format": "step", "media_type": "model/step"}


def exited(code: int = 0) -> Exited:
    return Exited(1, code, wall_seconds=0.5, cpu_seconds=0.4, peak_rss_bytes=1000)


class Scene:
    """An attempt, the numbers it had killed, and the child's end of its channel."""

    def __init__(self, order: Any) -> None:
        self.stages: list[str] = []
        self.killed: list[int] = []
        self.kill_asked = asyncio.Event()
        self.attempt = Attempt(order, BOUNDS, lambda stage, _: self.stages.append(stage), self._kill)
        channel, _ = self.attempt.descriptors()
        self.child = socket.socket(fileno=os.dup(channel))

    def _kill(self, number: int) -> None:
        self.killed.append(number)
        self.kill_asked.set()

    def begin(self) -> None:
        self.attempt.begin(os.getpid(), os.pidfd_open(os.getpid()))

    def close(self) -> None:
        self.attempt.close()
        self.child.close()


@pytest.fixture
async def scene(make_order: Any) -> AsyncIterator[Scene]:
    scene = Scene(make_order("make", text="x"))
    yield scene
    scene.close()


async def test_what_a_child_said_last_is_heard_even_if_its_death_is_heard_first(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(frame(Stage("export", None)) + frame(Done([FILE], {"volume": 1.5}, 0.25)))
    scene.attempt.end(exited())  # no turn of the loop in between
    assert isinstance(scene.attempt.outcome(), Made)
    assert scene.stages == ["export"]


async def test_a_file_outside_the_folder_is_garbage(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(frame(Done([{**FILE, "name": "../../etc/passwd"}], {}, 0.25)))
    await asyncio.wait_for(scene.kill_asked.wait(), 5.0)
    assert scene.killed == [scene.attempt.number]
    scene.attempt.end(exited(-9))
    outcome = scene.attempt.outcome()
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "KERNEL_CRASHED"


async def test_the_first_last_word_stands(scene: Scene) -> None:
    scene.begin()
    raised = Raised("FILLET_FAILED", "Too round.", False, None, {}, 0.25)
    scene.child.sendall(frame(raised) + frame(Done([FILE], {}, 0.25)))
    scene.attempt.end(exited())
    outcome = scene.attempt.outcome()
    assert isinstance(outcome, Broke)
    assert outcome.error.code == "FILLET_FAILED"


async def test_a_child_is_killed_once(scene: Scene) -> None:
    scene.begin()
    scene.child.sendall(b"\xff" * 8)
    scene.attempt.end(exited(-11))
    scene.child.sendall(b"\xff" * 8)
    assert scene.killed == [scene.attempt.number]


async def test_the_task_is_sent_when_the_child_is_known_and_not_before(scene: Scene) -> None:
    scene.child.setblocking(False)
    with pytest.raises(BlockingIOError):
        scene.child.recv(1)
    scene.begin()
    assert b'"do":"make"' in scene.child.recv(65_536)


async def test_a_child_that_died_before_it_was_known_is_still_waited_for(scene: Scene) -> None:
    """Its number is free again: there is nothing to watch, and its zygote will tell how it ended."""
    scene.attempt.begin(2**22 + 1, os.pidfd_open(os.getpid()))
    assert not scene.attempt.ended.done()
    scene.attempt.end(exited(-11))
    outcome = scene.attempt.outcome()
    assert isinstance(outcome, Broke)
    assert outcome.error.detail == {"signal": "SIGSEGV"}
