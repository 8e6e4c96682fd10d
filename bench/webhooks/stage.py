"""Starts the processes of a scene: what is sent to, and who sends."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.process import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENDPOINTS = 100


@dataclass(frozen=True, slots=True)
class Stage:
    """Where stores are put, and the receiver."""

    folder: Path
    receiver: Process

    def urls(self, path: str = "/ok", count: int = ENDPOINTS) -> list[str]:
        """So many endpoints that behave as `path` says."""
        return [f"{self.receiver.ready['url']}{path}?{number}" for number in range(count)]

    @contextlib.contextmanager
    def sender(self, scene: str, **options: Any) -> Iterator[Process]:
        """A sender that is ready for `scene`, with an empty store."""
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            asked = {"scene": scene, "folder": folder, **options}
            with Process(scene, (sys.executable, "-m", "bench.webhooks.scenes"), asked) as process:
                self.report()  # what came while it made itself ready is nobody's business
                yield process

    def report(self) -> dict[str, Any]:
        """What the receiver got since it was last asked."""
        return self.receiver.say("report").result()


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[Stage]:
    """With a receiver that costs little."""
    command = (sys.executable, "-m", "bench.webhooks.receiver")
    with Process("receiver", command, {}) as receiver:
        yield Stage(folder, receiver)


@contextlib.contextmanager
def hostile_url() -> Iterator[str]:
    """Where the hostile receiver listens."""
    with Process("hostile receiver", (sys.executable, "-m", "bench.webhooks.hostile"), {}) as receiver:
        yield receiver.ready["url"]
