"""An attempt's inputs: the job's own are copied, the others fetched."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tempa.core.errors import TempaError
from tempa.core.limits import DEFAULT_LIMITS
from tempa.jobs.ports import Fetched, Takes
from tempa.jobs.provide import Provider
from tests.unit.jobs.samples import a_job, a_request

if TYPE_CHECKING:
    from tempa.jobs.model import Job

URL = "https://example.com/cat.png"
SHA256 = "0" * 64
OWN = {"sha256": SHA256, "file_size_bytes": 3}


class Engine:
    name = "echo"
    takes = (
        Takes("image", lambda limits: limits.image_bytes, ("image/*",), too_large="IMAGE_TOO_LARGE"),
        Takes("depth", lambda limits: limits.upload_bytes, ("image/*",), required=False),
    )


@dataclass
class Shelf:
    """Lends what it has."""

    files: dict[str, bytes] = field(default_factory=dict)
    full: bool = False

    async def lend(self, key: str, target: Path) -> bool:
        if self.full:
            raise OSError(28, "No space left on device")
        if key not in self.files:
            return False
        await asyncio.to_thread(target.write_bytes, self.files[key])
        return True


@dataclass
class Web:
    """Has one file; `large`: larger than anybody wants."""

    large: bool = False
    asked: list[tuple[str, int, tuple[str, ...]]] = field(default_factory=list)

    async def fetch(
        self, url: str, target: Path, *, size_bytes_max: int, timeout_seconds: float, media_types: Any
    ) -> Fetched | None:
        self.asked.append((url, size_bytes_max, tuple(media_types)))
        if self.large:
            return None
        await asyncio.to_thread(target.write_bytes, b"fetched")
        return Fetched(7, SHA256, "image/png")


@dataclass
class Bench:
    folder: Path
    shelf: Shelf = field(default_factory=Shelf)
    web: Web = field(default_factory=Web)
    stages: list[str] = field(default_factory=list)

    async def provide(self, **inputs: Any) -> Job:
        job = a_job(request=a_request(inputs=inputs))
        self.shelf.files.setdefault(f"{job.id}.a0/image", b"own")
        provider = Provider(
            artifacts=cast("Any", self.shelf), fetch=cast("Any", self.web), limits=DEFAULT_LIMITS
        )
        await provider.provide(
            job, cast("Any", Engine()), self.folder, lambda stage, _: self.stages.append(stage)
        )
        return job

    def _see(self, stage: str, _: float | None) -> None:
        self.stages.append(stage)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_an_own_input_is_copied_to_where_the_engine_looks(bench: Bench) -> None:
    await bench.provide(image=OWN)
    assert (bench.folder / "inputs" / "image").read_bytes() == b"own"
    assert bench.stages == []


async def test_a_url_is_fetched_within_the_inputs_limits(bench: Bench) -> None:
    await bench.provide(image={"url": URL})
    assert (bench.folder / "inputs" / "image").read_bytes() == b"fetched"
    assert bench.web.asked == [(URL, DEFAULT_LIMITS.image_bytes, ("image/*",))]
    assert bench.stages == ["fetching"]


async def test_a_job_without_inputs_has_no_folder_for_them(bench: Bench) -> None:
    await bench.provide()
    assert not (bench.folder / "inputs").exists()


@pytest.mark.parametrize(
    ("name", "code"), [("image", "IMAGE_TOO_LARGE"), ("depth", "SOURCE_FETCH_FAILED")], ids=["image", "depth"]
)
async def test_too_large_a_file_fails_the_job_for_good(bench: Bench, name: str, code: str) -> None:
    bench.web.large = True
    with pytest.raises(TempaError) as caught:
        await bench.provide(**{name: {"url": URL}})
    assert caught.value.code == code
    assert not caught.value.retryable


async def test_an_input_that_is_gone_fails_the_job_for_good(bench: Bench) -> None:
    with pytest.raises(TempaError) as caught:
        await bench.provide(depth=OWN)
    assert caught.value.code == "ARTIFACT_STORE_FAILED"
    assert caught.value.detail["input"] == "depth"
    assert not caught.value.retryable


async def test_a_full_disk_may_be_tried_again(bench: Bench) -> None:
    bench.shelf.full = True
    with pytest.raises(TempaError) as caught:
        await bench.provide(image=OWN)
    assert caught.value.code == "ARTIFACT_STORE_FAILED"
    assert caught.value.retryable
