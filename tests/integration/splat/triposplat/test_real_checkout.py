"""The adapter against the real model's code, made tiny. Where a checkout and its interpreter are given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gsply
import numpy as np
import pytest

from tempa.engines.splat.about.triposplat import TripoSplat
from tempa.engines.splat.triposplat import fitness
from tests.integration.splat.triposplat import tiny_checkout
from tests.integration.splat.triposplat.conftest import Bench, broken, made

if TYPE_CHECKING:
    from tempa.engines.host.engine_host import EngineHost

CHECKOUT = "TEMPA_TEST_TRIPOSPLAT_CHECKOUT"  # the folder of model.py and triposplat.py
PYTHON = "TEMPA_TEST_TRIPOSPLAT_PYTHON"  # an interpreter with torch, torchvision and what Tempa needs

pytestmark = [
    pytest.mark.asyncio(loop_scope="package"),
    pytest.mark.allowed_skip(f"the model's code is the operator's; {CHECKOUT} and {PYTHON} say where it is"),
    pytest.mark.skipif(
        not (os.environ.get(CHECKOUT) and os.environ.get(PYTHON)), reason=f"{CHECKOUT} is not set"
    ),
]


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tiny") / "checkout"
    return tiny_checkout.write(folder, Path(os.environ[CHECKOUT]), os.environ[PYTHON])


@pytest.fixture
def job(host: EngineHost, options: dict[str, Any], tmp_path: Path) -> Bench:
    python = os.environ[PYTHON]
    return Bench(TripoSplat(python=python, options={**options, "device": "cpu"}), host, tmp_path)


async def test_the_real_code_makes_gaussians(job: Bench) -> None:
    done = made(await job.run(formats=("ply", "spz"), num_gaussians=[4096, 1024]))
    read = gsply.plyread(job.latest / "model.ply")
    assert len(read.means) == done.measurements["gaussians"] == 4096
    assert (
        np.abs(read.means).max() < 0.8
    )  # points of the unit cube, and what random weights move Gaussians off them
    assert len(gsply.plyread(job.latest / "model-1024.ply").means) == 1024
    assert "sampling" in {stage for stage, _ in job.watcher.stages}


async def test_the_same_request_gives_the_same_bytes(job: Bench) -> None:
    made(await job.run(num_gaussians=1024))
    first = job.sha256("model.ply")
    made(await job.run(num_gaussians=1024))
    assert job.sha256("model.ply") == first


async def test_it_is_found_fit(job: Bench) -> None:
    assert fitness.unfit(job.engine.read_options, job.engine.python, whole_files=True) is None


async def test_without_a_gpu_that_is_said_before_the_work(job: Bench, options: dict[str, Any]) -> None:
    if fitness.versions(os.environ[PYTHON])["cuda"]:
        pytest.skip("there is a GPU here")
    engine = TripoSplat(python=job.engine.python, options={**options, "device": "cuda"})
    reason = engine.unfit()
    assert reason is not None
    assert reason.code == "DEVICE_UNAVAILABLE"
    assert broken(await Bench(engine, job.host, job.folder).run()).code == "DEVICE_UNAVAILABLE"
