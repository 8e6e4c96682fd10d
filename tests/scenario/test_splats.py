"""The whole way of a picture: POST, ticket, engine, files, verified webhook; and what others make of them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

import gsply
import pytest
from PIL import Image

import tempa.webhooks
from tempa.testing.pictures import toadstool
from tempa.testing.seeds import SEED_001
from tempa.testing.server import wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx2

    from tempa.testing.receiver import Receiver
    from tempa.testing.server import Fleet, Server

ROUTE = "/v1/splats/generate"
SMALL = {"parameters": {"num_gaussians": 4096}, "preview": {"width": 128, "height": 128}}


@pytest.fixture(scope="module")
def picture() -> bytes:
    return toadstool(192)


@pytest.fixture
def web(picture: bytes) -> Iterator[Web]:
    with Web(picture) as serving:
        yield serving


class Web:
    """Serves a picture on loopback; `answers` are the statuses it gives first."""

    def __init__(self, picture: bytes) -> None:
        self.answers: list[int] = []
        self.asked = 0
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.asked += 1
                status = web.answers.pop(0) if web.answers else 200
                body = picture if status == 200 else b"no"
                self.send_response(status)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/toadstool.png"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def asked(http: httpx2.Client, document: dict[str, Any], route: str = ROUTE) -> dict[str, Any]:
    """The job of a request, once it has ended."""
    answer = http.post(route, json=document)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = wait_for_end(http, answer.json()["job_id"])
    return job


def fetched(http: httpx2.Client, job: dict[str, Any], role: str) -> bytes:
    """A result's bytes, as its job describes them."""
    (artifact,) = [one for one in job["result"]["artifacts"] if one["role"] == role]
    content = http.get(artifact["download_url"], headers={"Authorization": ""}).content
    assert hashlib.sha256(content).hexdigest() == artifact["sha256"]
    return content


def inlined(picture: bytes, **more: Any) -> dict[str, Any]:
    return {**SMALL, "image_base64": base64.b64encode(picture).decode(), **more}


def test_a_picture_becomes_splats_that_others_read_and_one_verified_webhook(
    server: Server | Fleet, http: httpx2.Client, receiver: Receiver, picture: bytes, tmp_path: Path
) -> None:
    document = {**SMALL, "webhook_url": receiver.url("/hook"), "tags": {"of": "a toadstool"}}
    files: dict[str, Any] = {
        "image": ("toad.png", picture),
        "request": (None, json.dumps(document), "application/json"),
    }
    answer = http.post(ROUTE, files=files)
    assert answer.status_code == 202, answer.text
    job = wait_for_end(http, answer.json()["job_id"])
    assert job["status"] == "completed", job["error"]
    assert job["job_id"].startswith("splat_")

    count = job["result"]["measurements"]["gaussians"]
    assert 0.9 * 4096 <= count <= 4096
    ply, spz = tmp_path / "model.ply", tmp_path / "model.spz"
    ply.write_bytes(fetched(http, job, "gaussian_ply"))
    spz.write_bytes(fetched(http, job, "spz"))
    assert [len(gsply.plyread(str(ply)).means), len(gsply.read_spz(str(spz)).means)] == [count, count]
    assert Image.open(io.BytesIO(fetched(http, job, "rendered_preview"))).size == (128, 128)

    (delivery,) = receiver.wait_for(1, 30, "/hook")
    assert server.ready
    event = tempa.webhooks.verify(delivery.body, delivery.headers, server.ready["webhook_secret"])
    assert event["type"] == event["event"] == "3d_reconstruction.completed"
    data = event["data"]
    assert (data["job_id"], data["status"], data["model"]) == (job["job_id"], "completed", "relief-splat")
    assert data["artifacts"].keys() == {"gaussian_ply", "spz", "rendered_preview"}
    assert data["tags"] == {"of": "a toadstool"}


def test_the_same_picture_gives_the_same_bytes_each_time(http: httpx2.Client, picture: bytes) -> None:
    documents = [inlined(picture, cache="bypass", tags={"n": str(number)}) for number in range(2)]
    first, second = (asked(http, document) for document in documents)
    assert not second["cached"]
    hashes = [[one["sha256"] for one in job["result"]["artifacts"]] for job in (first, second)]
    assert hashes[0] == hashes[1]


def test_equal_work_takes_its_result_whatever_way_the_picture_came(
    http: httpx2.Client, picture: bytes
) -> None:
    first = asked(http, inlined(picture, tags={"way": "base64"}, parameters={"num_gaussians": 2048}))
    upload = http.post(
        "/v1/files", content=picture, headers={"Content-Type": "application/octet-stream"}
    ).json()
    document = {**SMALL, "parameters": {"num_gaussians": 2048}, "tags": {"way": "upload"}}
    second = asked(http, {**document, "image_artifact": {"file_id": upload["file_id"]}})
    assert (first["cached"], second["cached"]) == (False, True)


def test_a_cad_jobs_result_becomes_splats_and_they_another_file(http: httpx2.Client, tmp_path: Path) -> None:
    part = asked(http, {**SEED_001, "export_format": "glb"}, "/v1/models/generate")
    reference = {"job_id": part["job_id"], "name": "model.glb"}
    splats = asked(http, {**SMALL, "engine": "mesh-splat", "mesh_artifact": reference})
    assert splats["status"] == "completed", splats["error"]
    reference = {"job_id": splats["job_id"], "name": "model.spz"}
    document = {"file_artifact": reference, "export_formats": ["splat", "glb"]}
    converted = asked(http, {**document, "parameters": {"num_gaussians": 1000}}, "/v1/convert")
    assert converted["status"] == "completed", converted["error"]
    assert converted["job_id"].startswith("conv_")
    assert len(fetched(http, converted, "splat")) == 1000 * 32


def test_a_picture_is_fetched_by_url(http: httpx2.Client, web: Web) -> None:
    job = asked(http, {**SMALL, "image_url": web.url})
    assert job["status"] == "completed", job["error"]
    assert web.asked == 1


def test_a_fetch_that_fails_for_a_moment_is_tried_again(http: httpx2.Client, web: Web) -> None:
    web.answers = [503]
    job = asked(http, {**SMALL, "image_url": web.url})
    assert job["status"] == "completed", job["error"]
    assert (job["attempt"], web.asked) == (2, 2)


def test_a_picture_that_is_not_there_fails_the_job_for_good(http: httpx2.Client, web: Web) -> None:
    web.answers = [404]
    job = asked(http, {**SMALL, "image_url": web.url})
    assert (job["status"], job["error"]["code"]) == ("failed", "SOURCE_FETCH_FAILED")
    assert not job["error"]["retryable"]
    assert web.asked == 1


def test_a_picture_that_shows_nothing_fails_with_its_code_in_the_webhook(
    http: httpx2.Client, receiver: Receiver
) -> None:
    file = io.BytesIO()
    Image.new("RGBA", (128, 128), (200, 10, 10, 0)).save(file, "PNG")
    job = asked(http, inlined(file.getvalue(), webhook_url=receiver.url("/hook")))
    assert (job["status"], job["error"]["code"]) == ("failed", "NO_FOREGROUND")
    (delivery,) = receiver.wait_for(1, 30, "/hook")
    event = json.loads(delivery.body)
    assert event["type"] == "3d_reconstruction.failed"
    assert (event["data"]["error_code"], event["data"]["retryable"]) == ("NO_FOREGROUND", False)


def test_what_a_picture_shows_at_once_is_refused_at_once(http: httpx2.Client) -> None:
    file = io.BytesIO()
    Image.new("RGB", (2, 4000)).save(file, "PNG")
    answer = http.post(ROUTE, files={"image": ("strip.png", file.getvalue())})
    assert answer.status_code == 422
    assert answer.json()["code"] in {"IMAGE_TOO_SMALL", "IMAGE_ASPECT_RATIO"}


def test_a_model_that_is_not_installed_is_refused_with_its_code(http: httpx2.Client, picture: bytes) -> None:
    answer = http.post(ROUTE, json=inlined(picture, engine="triposplat", parameters={}))
    assert answer.status_code == 422
    assert answer.json()["code"] == "MODEL_NOT_INSTALLED"
    engines = {one["name"] for one in http.get("/v1/engines").json()["items"]}
    assert {"relief-splat", "mesh-splat", "splat-convert"} <= engines
    assert "triposplat" not in engines


def test_a_removed_job_leaves_no_picture_behind(
    server: Server | Fleet, http: httpx2.Client, picture: bytes
) -> None:
    job = asked(http, inlined(picture, parameters={"num_gaussians": 1024}))
    assert list(server.data_dir.rglob(f"{job['job_id']}.a0/image"))
    assert http.delete(f"/v1/jobs/{job['job_id']}").status_code == 204
    assert not list(server.data_dir.rglob(f"{job['job_id']}*"))
    assert http.post(f"/v1/jobs/{job['job_id']}/retry").status_code == 410
