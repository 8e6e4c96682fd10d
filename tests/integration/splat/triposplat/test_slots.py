"""A model that works for minutes keeps no slot from what takes seconds."""

from __future__ import annotations

import base64
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from tempa.testing import fake_triposplat
from tempa.testing.seeds import SEED_001
from tempa.testing.server import Server, wait_for_end
from tests.integration.splat.triposplat.conftest import picture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

    from tempa.testing.fake_triposplat import FakeTripoSplat


@pytest.fixture
def gpu(tmp_path: Path) -> FakeTripoSplat:
    return fake_triposplat.write(tmp_path / "fake", device="cuda", keep="none")


@pytest.fixture
def http(gpu: FakeTripoSplat, tmp_path: Path) -> Iterator[httpx2.Client]:
    environment = {
        "TEMPA_ENGINES__TRIPOSPLAT__PYTHON": gpu.python,
        "TEMPA_ENGINES__TRIPOSPLAT__OPTIONS": json.dumps(gpu.options),
        "TEMPA_WORKER__SLOTS": "1",
    }
    with Server(tmp_path / "data", environment) as server, server.http() as client:
        yield client


def status(http: httpx2.Client, job_id: str) -> str:
    return str(http.get(f"/v1/jobs/{job_id}").json()["status"])


def test_parts_are_made_while_pictures_wait_for_the_one_model(
    http: httpx2.Client, gpu: FakeTripoSplat, tmp_path: Path
) -> None:
    for step in (0, 1):
        os.mkfifo(tmp_path / f"pipe{step}")
    gpu.provoke(total_bytes=8 << 30, pipe=str(tmp_path / "pipe"))
    picture(tmp_path / "picture.png")
    request: dict[str, Any] = {
        "engine": "triposplat",
        "image_base64": base64.b64encode((tmp_path / "picture.png").read_bytes()).decode(),
        "parameters": {"num_gaussians": 2048, "steps": 2},
        "preview": {"width": 64, "height": 64},
    }
    first, second = (
        http.post(
            "/v1/splats/generate", json={**request, "tags": {"n": str(number)}, "cache": "bypass"}
        ).json()
        for number in range(2)
    )
    opened = os.open(tmp_path / "pipe0", os.O_WRONLY)  # the first has come to its first step, and waits there

    part = wait_for_end(http, http.post("/v1/models/generate", json=SEED_001).json()["job_id"])

    assert part["status"] == "completed"
    assert status(http, first["job_id"]) == "processing"
    assert status(http, second["job_id"]) == "queued"
    for job in (second, first):
        http.post(f"/v1/jobs/{job['job_id']}/cancel")
    os.close(opened)
    assert wait_for_end(http, first["job_id"])["status"] == "canceled"
