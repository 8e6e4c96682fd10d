"""POST /v1/splats/generate: a job that works on a file, given in any of its ways."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.limits import Limits
from tempa.jobs.model import Result, StoredArtifact
from tests.unit.api.conftest import World
from tests.unit.api.fakes import PictureEngine

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

ROUTE = "/v1/splats/generate"
PICTURE = b"a picture"
IN_BASE64 = base64.b64encode(PICTURE).decode()
LIMITS = Limits(json_body_bytes=2048, upload_bytes=4096, image_bytes=1024, streams_max=3)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, engines={"relief-splat": PictureEngine()}, limits=LIMITS)


def stored(world: World) -> list[str]:
    """What lies in the artifact store, by place below the root."""
    root: Path = world.folder
    files = [path for path in root.rglob("*") if path.is_file()]
    return sorted(str(path.relative_to(root)) for path in files)


async def upload(http: httpx2.AsyncClient, content: bytes = PICTURE) -> str:
    answer = await http.post(
        "/v1/files", content=content, headers={"Content-Type": "application/octet-stream"}
    )
    file_id: str = answer.json()["file_id"]
    return file_id


def own_input(world: World, job_id: str, name: str = "image") -> bytes:
    (path,) = world.folder.rglob(f"{job_id}.a0/{name}")
    return path.read_bytes()


async def test_a_picture_in_base64_lies_with_the_job_and_nowhere_else(
    world: World, http: httpx2.AsyncClient
) -> None:
    answer = await http.post(ROUTE, json={"image_base64": IN_BASE64})
    job_id = answer.json()["job_id"]
    assert answer.status_code == 202
    assert own_input(world, job_id) == PICTURE
    assert len(stored(world)) == 1
    reference = world.jobs.rows[job_id].request.inputs["image"]
    assert reference["file_size_bytes"] == len(PICTURE)
    assert world.jobs.rows[job_id].request.work == {"seed": 0}


async def test_a_data_url_is_taken_for_its_bytes(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, json={"image_base64": f"data:image/png;base64,{IN_BASE64}"})
    assert own_input(world, answer.json()["job_id"]) == PICTURE


async def test_a_form_brings_its_files_and_its_request(world: World, http: httpx2.AsyncClient) -> None:
    request = (None, b'{"parameters": {"seed": 3}}', "application/json")
    files: dict[str, Any] = {"request": request, "image": ("a.png", PICTURE), "depth": ("d.png", b"deep")}
    answer = await http.post(ROUTE, files=files)
    job_id = answer.json()["job_id"]
    assert answer.status_code == 202
    assert own_input(world, job_id) == PICTURE
    assert own_input(world, job_id, "depth") == b"deep"
    assert world.jobs.rows[job_id].request.work == {"seed": 3}
    assert len(stored(world)) == 2


async def test_a_form_needs_no_request(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, files={"image": ("a.png", PICTURE)})
    assert answer.status_code == 202


async def test_an_upload_is_copied_and_stays_what_it_was(world: World, http: httpx2.AsyncClient) -> None:
    file_id = await upload(http)
    answer = await http.post(ROUTE, json={"image_artifact": {"file_id": file_id}})
    job_id = answer.json()["job_id"]
    await world.artifacts.delete(file_id)
    assert answer.status_code == 202
    assert own_input(world, job_id) == PICTURE


async def test_a_result_of_another_job_is_an_input(world: World, http: httpx2.AsyncClient) -> None:
    made = (await http.post(ROUTE, json={"image_base64": IN_BASE64})).json()["job_id"]
    kept = StoredArtifact(
        name="preview.png",
        role="rendered_preview",
        file_format="png",
        media_type="image/png",
        size_bytes=len(PICTURE),
        sha256="0" * 64,
        key=f"{made}.a0/image",
    )
    world.jobs.tell(made, "job.started")
    world.jobs.tell(made, "job.completed", result=Result(artifacts=(kept,), measurements={}))
    answer = await http.post(ROUTE, json={"image_artifact": {"job_id": made, "name": "preview.png"}})
    assert answer.status_code == 202
    assert own_input(world, answer.json()["job_id"]) == PICTURE


async def test_the_same_picture_is_the_same_request_however_it_comes(
    world: World, http: httpx2.AsyncClient
) -> None:
    first = await http.post(ROUTE, json={"image_base64": IN_BASE64})
    by_file = await http.post(ROUTE, json={"image_artifact": {"file_id": await upload(http)}})
    in_form = await http.post(ROUTE, files={"image": ("b.png", PICTURE)})
    assert [first.status_code, by_file.status_code, in_form.status_code] == [202, 200, 200]
    assert len({one.json()["job_id"] for one in (first, by_file, in_form)}) == 1
    assert len([name for name in stored(world) if ".a0/" in name]) == 1


async def test_another_picture_is_another_request(http: httpx2.AsyncClient) -> None:
    first = await http.post(ROUTE, json={"image_base64": IN_BASE64})
    other = await http.post(ROUTE, json={"image_base64": base64.b64encode(b"another").decode()})
    assert first.json()["job_id"] != other.json()["job_id"]


async def test_what_a_url_leads_to_is_nobodys_to_know(world: World, http: httpx2.AsyncClient) -> None:
    body = {"image_url": "https://example.com/cat.png"}
    answers = [await http.post(ROUTE, json=body) for _ in range(2)]
    assert [one.status_code for one in answers] == [202, 202]
    job = world.jobs.rows[answers[0].json()["job_id"]]
    assert job.request.inputs == {"image": {"url": "https://example.com/cat.png"}}


async def test_a_url_to_a_private_address_is_refused(http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, json={"image_url": "https://169.254.169.254/latest"})
    assert answer.status_code == 422
    assert answer.json()["code"] == "ADDRESS_NOT_ALLOWED"
    assert answer.json()["errors"][0]["pointer"] == "/image_url"


async def test_a_bad_picture_is_refused_with_its_code_and_leaves_nothing(
    world: World, http: httpx2.AsyncClient
) -> None:
    answer = await http.post(ROUTE, files={"image": ("a.png", b"bad picture")})
    problem = answer.json()
    assert answer.status_code == 422
    assert problem["code"] == "IMAGE_UNREADABLE"
    assert problem["errors"] == [
        {"pointer": "/image", "message": "This image is bad.", "limit": 7, "code": "IMAGE_UNREADABLE"}
    ]
    assert stored(world) == []


async def test_all_problems_are_told_at_once(http: httpx2.AsyncClient) -> None:
    body = {
        "image_base64": base64.b64encode(b"bad").decode(),
        "depth_base64": "???",
        "mesh_artifact": {"file_id": "file_x"},
        "parameters": {"seed": -1},
        "priority": 11,
        "image_format": "png",
    }
    answer = await http.post(ROUTE, json=body)
    assert answer.status_code == 422
    assert answer.json()["code"] == "INVALID_REQUEST"
    assert {problem["pointer"] for problem in answer.json()["errors"]} == {
        "/image_base64",
        "/depth_base64",
        "/mesh_artifact",
        "/parameters/seed",
        "/priority",
        "/image_format",
    }


BAD_INPUTS = {
    "none": ({}, "/image_artifact"),
    "two": ({"image_base64": IN_BASE64, "image_url": "https://example.com/a"}, "/image_base64"),
    "no base64": ({"image_base64": "a picture"}, "/image_base64"),
    "percent signs": ({"image_base64": f"data:image/png,{IN_BASE64}"}, "/image_base64"),
    "empty": ({"image_base64": ""}, "/image_base64"),
    "a number": ({"image_base64": 7}, "/image_base64"),
    "a url that is none": ({"image_url": 7}, "/image_url"),
    "no such file": ({"image_artifact": {"file_id": "file_x"}}, "/image_artifact/file_id"),
    "no such job": ({"image_artifact": {"job_id": "cad_x", "name": "a"}}, "/image_artifact/job_id"),
    "half a reference": ({"image_artifact": {"job_id": "cad_x"}}, "/image_artifact"),
    "a reference with more": ({"image_artifact": {"file_id": "f", "name": "a"}}, "/image_artifact"),
}


@pytest.mark.parametrize(("body", "pointer"), BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
async def test_an_input_that_is_none_is_422(
    world: World, http: httpx2.AsyncClient, body: dict[str, Any], pointer: str
) -> None:
    answer = await http.post(ROUTE, json=body)
    assert answer.status_code == 422
    assert [problem["pointer"] for problem in answer.json()["errors"]] == [pointer]
    assert stored(world) == []


async def test_too_large_a_picture_is_refused_with_its_code(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, files={"image": ("a.png", bytes(1025))})
    assert answer.status_code == 422
    assert answer.json()["code"] == "IMAGE_TOO_LARGE"
    assert answer.json()["errors"][0]["limit"] == 1024
    assert stored(world) == []


async def test_another_accounts_file_is_not_found(world: World, http: httpx2.AsyncClient) -> None:
    file_id = await upload(http)
    world.jobs.files[file_id] = replace(world.jobs.files[file_id], account="other")
    answer = await http.post(ROUTE, json={"image_artifact": {"file_id": file_id}})
    assert answer.json()["errors"][0]["pointer"] == "/image_artifact/file_id"


async def test_a_refused_admission_leaves_nothing(world: World, http: httpx2.AsyncClient) -> None:
    world.accounts.allow("default", queued_max=0)
    answer = await http.post(ROUTE, files={"image": ("a.png", PICTURE)})
    assert answer.status_code == 429
    assert stored(world) == []


async def test_an_unsure_admission_leaves_the_inputs_to_the_janitor(
    world: World, http: httpx2.AsyncClient
) -> None:
    world.jobs.switch.away = True
    answer = await http.post(ROUTE, files={"image": ("a.png", PICTURE)})
    assert answer.status_code == 503
    assert [name.rpartition("/")[2] for name in stored(world)] == ["image"]


async def test_an_engine_of_another_kind_is_not_offered(http: httpx2.AsyncClient) -> None:
    answer = await http.post("/v1/models/generate", json={"engine": "relief-splat", "parameters": {}})
    assert answer.status_code == 422
    assert answer.json()["code"] == "ENGINE_UNAVAILABLE"


async def test_a_retry_works_on_the_same_picture(world: World, http: httpx2.AsyncClient) -> None:
    first = (await http.post(ROUTE, json={"image_base64": IN_BASE64})).json()["job_id"]
    world.jobs.tell(first, "job.started")
    world.jobs.tell(first, "job.failed")
    again = await http.post(f"/v1/jobs/{first}/retry")
    assert again.status_code == 202
    assert own_input(world, again.json()["job_id"]) == PICTURE


async def test_a_retry_of_a_removed_job_has_no_picture(world: World, http: httpx2.AsyncClient) -> None:
    first = (await http.post(ROUTE, json={"image_base64": IN_BASE64})).json()["job_id"]
    world.jobs.tell(first, "job.started")
    world.jobs.tell(first, "job.failed")
    assert (await http.delete(f"/v1/jobs/{first}")).status_code == 204
    assert stored(world) == []
    again = await http.post(f"/v1/jobs/{first}/retry")
    assert again.status_code == 410


@pytest.mark.parametrize(
    ("request_field", "status"),
    [(b"{", 400), (b'{"a": 1, "a": 1}', 400), (b"[]", 422), (b" " * 3000, 413)],
    ids=["broken", "twice", "a list", "too long"],
)
async def test_a_forms_request_is_read_as_strictly(
    world: World, http: httpx2.AsyncClient, request_field: bytes, status: int
) -> None:
    files: dict[str, Any] = {
        "image": ("a.png", PICTURE),
        "request": (None, request_field, "application/json"),
    }
    answer = await http.post(ROUTE, files=files)
    assert answer.status_code == status
    assert stored(world) == []


async def test_an_empty_file_is_no_input(world: World, http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, files={"image": ("a.png", b"")})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/image"
    assert stored(world) == []


async def test_what_is_neither_json_nor_a_form_is_told_of_both(http: httpx2.AsyncClient) -> None:
    answer = await http.post(ROUTE, content=PICTURE, headers={"Content-Type": "image/png"})
    assert answer.status_code == 415
    assert "application/json" in answer.json()["detail"]
    assert "multipart/form-data with the file image or depth or mesh" in answer.json()["detail"]
