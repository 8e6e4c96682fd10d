"""Ready means: the store answers, an engine runs, and results can be written."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.core.errors import StoreUnavailable
from tempa.testing.clock import ManualClock
from tempa.wiring import readiness
from tempa.wiring.readiness import FRESH_SECONDS, Readiness

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 10


class Store:
    """A store that is there, or is not."""

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    async def job_by_id(self, job_id: str) -> None:
        if self._fault:
            raise self._fault


class Disk(LocalArtifacts):
    """A disk that can be full: what is written to it goes where the kernel says ENOSPC."""

    full = False
    probes = 0
    hold: threading.Event | None = None

    def scratch(self, name: str) -> Path:
        folder = super().scratch(name)
        Disk.probes += 1
        if Disk.hold is not None:
            Disk.hold.wait(SECONDS)
        if Disk.full:
            (folder / "room").symlink_to("/dev/full")
        return folder


@dataclass
class Server:
    """As much of `Parts` as readiness looks at."""

    artifacts: LocalArtifacts
    jobs: Store = field(default_factory=Store)
    engines: dict[str, Any] = field(default_factory=lambda: {"e": 1})
    clock: ManualClock = field(default_factory=ManualClock)

    def readiness(self) -> Readiness:
        return Readiness(cast("Any", self))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    for name, value in (("full", False), ("probes", 0), ("hold", None)):
        monkeypatch.setattr(Disk, name, value)
    artifacts = Disk(tmp_path / "artifacts")
    artifacts.open()
    return artifacts


async def test_a_server_whose_parts_work_is_ready_and_leaves_no_trace(disk: Disk) -> None:
    told = await Server(disk).readiness()()
    assert told == {"store": "ok", "engines": "ok", "artifacts": "ok"}
    assert [path for path in disk.root.rglob("*") if path.name not in {".tempa", "scratch"}] == []


async def test_without_an_engine_it_is_not(disk: Disk) -> None:
    told = await Server(disk, engines={}).readiness()()
    assert told["engines"] == "none can be loaded"


async def test_a_store_that_is_away_is_told_alone(disk: Disk) -> None:
    told = await Server(disk, jobs=Store(StoreUnavailable())).readiness()()
    assert told == {"store": "StoreUnavailable"}


async def test_a_full_disk_is_noticed_and_so_is_its_end(disk: Disk) -> None:
    server = Server(disk)
    ready = server.readiness()
    Disk.full = True
    assert (await ready())["artifacts"] == "cannot be written: No space left on device"
    Disk.full = False
    server.clock.advance(FRESH_SECONDS)
    assert (await ready())["artifacts"] == "ok"


@pytest.mark.parametrize(
    "spoil",
    [lambda folder: folder.touch(), lambda folder: folder.symlink_to("/proc")],
    ids=["no folder", "no place for files"],
)
async def test_a_place_that_cannot_be_written_is_told(disk: Disk, spoil: Callable[[Path], object]) -> None:
    scratch = disk.root / ".tempa" / "scratch"
    scratch.rmdir()
    spoil(scratch)
    told = await Server(disk).readiness()()
    assert told["artifacts"].startswith("cannot be written: ")


async def test_many_who_ask_are_answered_by_one_write(disk: Disk) -> None:
    server = Server(disk)
    ready = server.readiness()
    await asyncio.gather(*(ready() for _ in range(20)))
    assert Disk.probes == 1
    server.clock.advance(FRESH_SECONDS - 0.001)
    await ready()
    assert Disk.probes == 1
    server.clock.advance(0.001)
    await ready()
    assert Disk.probes == 2


async def test_a_disk_that_hangs_is_told_and_not_asked_again(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_PATIENCE_SECONDS", 0.01)
    server = Server(disk)
    ready = server.readiness()
    Disk.hold = threading.Event()
    for _ in range(3):
        assert (await ready())["artifacts"] == "the disk does not answer"
        server.clock.advance(FRESH_SECONDS)
    assert Disk.probes == 1
    monkeypatch.setattr(readiness, "_PATIENCE_SECONDS", SECONDS)
    Disk.hold.set()
    assert (await ready())["artifacts"] == "ok"
