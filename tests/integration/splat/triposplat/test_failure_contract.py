"""A GPU runs out of memory: an explicit, signed failure, as the source recipe asks, and a sound worker."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

import tempa.webhooks
from tempa.testing import fake_triposplat
from tempa.testing.receiver import Receiver
from tempa.testing.server import Server, wait_for_end
from tests.integration.splat.triposplat.conftest import picture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tempa.testing.fake_triposplat import FakeTripoSplat

GIB = 1 << 30
FAILING = {"total_bytes": 8 * GIB, "gaussian_bytes": 1 << 20}  # 16,384 Gaussians want 16 GiB


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> FakeTripoSplat:
    return fake_triposplat.write(tmp_path_factory.mktemp("gpu") / "fake", device="cuda", keep="none")


@pytest.fixture(scope="module")
def server(gpu: FakeTripoSplat, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environment = {
        "TEMPA_ENGINES__TRIPOSPLAT__PYTHON": gpu.python,
        "TEMPA_ENGINES__TRIPOSPLAT__OPTIONS": json.dumps(gpu.options),
    }
    with Server(tmp_path_factory.mktemp("server") / "data", environment) as serving:
        yield serving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def ask(server: Server, folder: Path, receiver: Receiver, count: int) -> dict[str, Any]:
    """The job of a request for so many Gaussians, once it has ended."""
    picture(folder / "picture.png")
    request = {
        "engine": "triposplat",
        "image_base64": base64.b64encode((folder / "picture.png").read_bytes()).decode(),
        "parameters": {"num_gaussians": count, "steps": 2},
        "preview": {"width": 64, "height": 64},
        "webhook_url": receiver.url("/ok"),
    }
    with server.http() as http:
        answer = http.post("/v1/splats/generate", json=request)
        assert answer.status_code == 202, answer.text
        return wait_for_end(http, answer.json()["job_id"])


def test_a_request_that_is_too_large_for_the_card_fails_once_and_says_so(
    server: Server, gpu: FakeTripoSplat, receiver: Receiver, tmp_path: Path
) -> None:
    gpu.provoke(**FAILING)
    job = ask(server, tmp_path, receiver, 16_384)
    assert (job["status"], job["attempt"]) == ("failed", 1)
    assert job["error"]["code"] == "CUDA_OUT_OF_MEMORY"
    assert job["error"]["detail"]["stage"] == "decoding"
    (told,) = receiver.wait_for(1)
    event = tempa.webhooks.verify(told.body, told.headers, [server.secret])
    assert event["event"] == "3d_reconstruction.failed"
    assert (
        event["data"].items()
        >= {
            "job_id": job["job_id"],
            "status": "failed",
            "model": "triposplat-v1",
            "error_code": "CUDA_OUT_OF_MEMORY",
            "message": "The request needs more memory than the GPU has (8.0 GiB).",
            "retryable": False,
            "tags": {},
        }.items()
    )


def test_the_worker_is_sound_after_it(
    server: Server, gpu: FakeTripoSplat, receiver: Receiver, tmp_path: Path
) -> None:
    gpu.provoke(**FAILING)
    ask(server, tmp_path, receiver, 16_384)
    gpu.provoke(total_bytes=8 * GIB)
    job = ask(server, tmp_path, receiver, 2048)
    assert job["status"] == "completed"
    told = receiver.wait_for(2)[-1]
    event = tempa.webhooks.verify(told.body, told.headers, [server.secret])
    assert event["event"] == "3d_reconstruction.completed"
    assert event["data"]["model"] == "triposplat-v1"
    assert event["data"]["artifacts"].keys() >= {"gaussian_ply", "rendered_preview"}


def test_memory_that_others_held_is_tried_once_more(
    server: Server, gpu: FakeTripoSplat, receiver: Receiver, tmp_path: Path
) -> None:
    gpu.provoke(total_bytes=8 * GIB, other_bytes=7 * GIB)
    job = ask(server, tmp_path, receiver, 4096)
    assert (job["status"], job["attempt"]) == ("failed", 2)
    assert job["error"]["retryable"] is True
    receiver.wait_for(1)
