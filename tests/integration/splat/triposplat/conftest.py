from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import pytest_asyncio
from PIL import Image

from tempa.engines.host.engine_host import EngineHost
from tempa.engines.splat.about.triposplat import TripoSplat
from tempa.jobs.ports import Broke, Made, Order, RunLimits
from tempa.testing import fake_triposplat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tempa.testing.fake_triposplat import FakeTripoSplat

PATIENCE_SECONDS = 30.0
SMALL = {"num_gaussians": 2048, "steps": 4}


def picture(path: Path, *, alpha: bool = True) -> None:
    """An orange disc: cut out, or before a background that nothing plain can be said of."""
    y, x = np.mgrid[-1:1:160j, -1:1:160j]
    inside = np.hypot(x, y) < 0.7
    pixels = np.zeros((160, 160, 4), np.uint8)
    pixels[..., :3] = (230, 130, 40)
    pixels[..., 3] = np.where(inside, 255, 0)
    if not alpha:
        pixels[..., 3] = 255
        noise = np.random.default_rng(3).integers(0, 255, (160, 160, 3))
        pixels[~inside, :3] = noise[~inside]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, "png")


@dataclass
class Watcher:
    """Hears the stages, and wakes who waits for one."""

    stages: list[tuple[str, float | None]] = field(default_factory=list)
    on_stage: Callable[[str], None] = lambda stage: None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, stage: str, fraction: float | None) -> None:
        self.stages.append((stage, fraction))
        self.on_stage(stage)
        self._news.set()

    async def reached(self, stage: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while stage not in [name for name, _ in self.stages]:
                self._news.clear()
                await self._news.wait()


@dataclass
class Bench:
    """An engine on a host, and jobs for it."""

    engine: TripoSplat
    host: EngineHost
    folder: Path
    watcher: Watcher = field(default_factory=Watcher)
    jobs: int = 0

    async def run(
        self, *, alpha: bool = True, formats: tuple[str, ...] = ("ply",), **parameters: Any
    ) -> Made | Broke:
        """One job, in a folder of its own."""
        reading = self.engine.read(
            {
                "parameters": SMALL | parameters,
                "export_formats": list(formats),
                "preview": {"width": 64, "height": 64},
            }
        )
        assert reading.work is not None, reading.problems
        self.jobs += 1
        picture(self.latest / "inputs" / "image", alpha=alpha)
        order = Order(
            engine=self.engine.name,
            module=self.engine.module,
            life_cycle=self.engine.life_cycle,
            work=reading.work,
            folder=self.latest,
            limits=RunLimits(60.0, 2 << 30),
            python=self.engine.python,
            options=self.engine.options,
        )
        return await self.host.run(order, self.watcher)

    @property
    def latest(self) -> Path:
        """The folder of the latest job."""
        return self.folder / f"job{self.jobs}"

    def sha256(self, name: str) -> str:
        """Of a file of the latest job."""
        return hashlib.sha256((self.latest / name).read_bytes()).hexdigest()


def broken(outcome: Made | Broke) -> Any:
    assert isinstance(outcome, Broke), outcome
    return outcome.error


def made(outcome: Made | Broke) -> Made:
    assert isinstance(outcome, Made), outcome
    return outcome


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def host() -> AsyncIterator[EngineHost]:
    """One for all: a process takes a second to start, and one that is sound serves the next test too."""
    host = EngineHost(reap_seconds=2.0)
    yield host
    await host.close()


@pytest.fixture
def fresh(tmp_path: Path) -> FakeTripoSplat:
    """On the CPU, with files of its own that a test may change."""
    return fake_triposplat.write(tmp_path / "fake")


@pytest.fixture(scope="package")
def shared_fake(tmp_path_factory: pytest.TempPathFactory) -> FakeTripoSplat:
    return fake_triposplat.write(tmp_path_factory.mktemp("fake") / "fake")


@pytest.fixture(scope="package")
def shared_card(tmp_path_factory: pytest.TempPathFactory) -> FakeTripoSplat:
    return fake_triposplat.write(tmp_path_factory.mktemp("card") / "card", device="cuda")


@pytest.fixture
def fake(shared_fake: FakeTripoSplat) -> FakeTripoSplat:
    """On the CPU."""
    shared_fake.provoke()
    shared_fake.forget()
    return shared_fake


@pytest.fixture
def card(shared_card: FakeTripoSplat) -> FakeTripoSplat:
    """On a GPU of 16 GiB that is ours alone."""
    shared_card.provoke(total_bytes=16 << 30)
    shared_card.forget()
    return shared_card


@pytest.fixture
def bench(host: EngineHost, tmp_path: Path) -> Callable[..., Bench]:
    """A bench for a fake, with options over its own."""

    def bench(fake: FakeTripoSplat, **options: Any) -> Bench:
        engine = TripoSplat(python=fake.python, options={**fake.options, **options})
        return Bench(engine, host, tmp_path)

    return bench
