"""Downloads: a file appears whole and right, or not at all."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tempa.client.effects import Answer, Lost
from tempa.client.errors import Corrupted, JobFailed, Misconfigured, NotAuthorized, NotReachable, TempaProblem
from tempa.client.files import download
from tempa.jobs.wire import JobView

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.client.conftest import World

STEP = b"ISO-10303-21;\nEND-ISO-10303-21;\n"
GLB = b"glTF\x02\x00\x00\x00"
CUT = Lost("connection reset", sent=True)
EXPIRED = Answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")


def artifact(name: str, content: bytes, link: str) -> dict[str, object]:
    return {
        "name": name,
        "role": name.rpartition(".")[2],
        "file_format": name.rpartition(".")[2],
        "media_type": "application/octet-stream",
        "file_size_bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "download_url": link,
        "expires_at": "2026-01-01T01:00:00Z",
    }


def look(*artifacts: dict[str, object], status: str = "completed") -> Answer:
    result = {**artifacts[0], "artifacts": artifacts, "measurements": {}} if artifacts else None
    view = {
        "job_id": "cad_1",
        "status": status,
        "created_at": "2026-01-01T00:00:00Z",
        "result": result,
        "engine": "opencascade-brep",
        "sequence": 4,
        "attempt": 1,
        "cached": False,
        "progress": {"stage": status},
        "compute_time_ms": 0,
        "peak_rss_bytes": 0,
        "retained_until": "2026-02-01T00:00:00Z",
        "tags": {},
    }
    return Answer(200, {}, json.dumps(view).encode())


MODEL = look(artifact("model.step", STEP, "https://bucket/step?1"))


def content(data: bytes) -> Answer:
    return Answer(200, {}, data)


def test_every_artifact_is_put_into_the_folder(world: World, tmp_path: Path) -> None:
    job = look(
        artifact("model.step", STEP, "https://bucket/step"), artifact("model.glb", GLB, "https://bucket/glb")
    )

    flow = download("cad_1", tmp_path / "new/out", None, world.pace, 60)
    paths = world.run(flow, job, content(STEP), content(GLB))

    assert [path.name for path in paths] == ["model.step", "model.glb"]
    assert [path.read_bytes() for path in paths] == [STEP, GLB]
    assert sorted(path.name for path in (tmp_path / "new/out").iterdir()) == ["model.glb", "model.step"]


def test_only_what_was_named_is_fetched(world: World, tmp_path: Path) -> None:
    job = look(artifact("model.step", STEP, "https://b/1"), artifact("model.glb", GLB, "https://b/2"))

    world.run(download("cad_1", tmp_path, {"model.glb"}, world.pace, 60), job, content(GLB))

    assert [path.name for path in tmp_path.iterdir()] == ["model.glb"]


def test_a_name_that_is_not_there_is_told_with_those_that_are(world: World, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"has no model\.obj; it has model\.step"):
        world.run(download("cad_1", tmp_path, {"model.obj"}, world.pace, 60), MODEL)


def test_a_transfer_that_breaks_starts_again(world: World, tmp_path: Path) -> None:
    world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, CUT, Answer(503, {}), content(STEP))

    assert (tmp_path / "model.step").read_bytes() == STEP
    assert world.pauses == [0.25, 0.5]


def test_a_link_that_has_expired_is_renewed(world: World, tmp_path: Path) -> None:
    renewed = look(artifact("model.step", STEP, "https://bucket/step?2"))

    world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, EXPIRED, renewed, content(STEP))

    assert (tmp_path / "model.step").read_bytes() == STEP
    assert [call.path for call in world.calls] == [
        "/v1/jobs/cad_1",
        "https://bucket/step?1",
        "/v1/jobs/cad_1",
        "https://bucket/step?2",
    ]


def test_an_artifact_alone_cannot_have_its_link_renewed(world: World, tmp_path: Path) -> None:
    view = JobView.model_validate_json(MODEL.body)
    assert view.result is not None

    with pytest.raises(NotAuthorized):
        world.run(download(view.result.artifacts[0], tmp_path, None, world.pace, 60), EXPIRED)


def test_bytes_that_do_not_match_never_take_the_files_name(world: World, tmp_path: Path) -> None:
    (tmp_path / "model.step").write_bytes(b"the one from yesterday")

    with pytest.raises(Corrupted, match="SHA-256"):
        world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, *[content(STEP[:-1])] * 6)

    assert [path.name for path in tmp_path.iterdir()] == ["model.step"]
    assert (tmp_path / "model.step").read_bytes() == b"the one from yesterday"


def test_bytes_that_do_not_match_are_fetched_again(world: World, tmp_path: Path) -> None:
    world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, content(STEP[:-1]), content(STEP))

    assert (tmp_path / "model.step").read_bytes() == STEP


def test_it_gives_up_in_the_end_and_leaves_nothing(world: World, tmp_path: Path) -> None:
    with pytest.raises(NotReachable):
        world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, *[CUT] * 6)

    assert list(tmp_path.iterdir()) == []


def test_a_download_that_is_given_up_by_the_caller_leaves_nothing(world: World, tmp_path: Path) -> None:
    flow = download("cad_1", tmp_path, None, world.pace, 60)
    flow.send(None)
    flow.send(MODEL)
    assert len(list(tmp_path.iterdir())) == 1  # on its way

    flow.close()  # what a driver does when a disk is full, or Ctrl-C is pressed

    assert list(tmp_path.iterdir()) == []


def test_what_is_gone_is_told(world: World, tmp_path: Path) -> None:
    with pytest.raises(TempaProblem) as caught:
        world.run(download("cad_1", tmp_path, None, world.pace, 60), MODEL, Answer(410, {}))

    assert caught.value.status == 410


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "..", ".", "", "a/b", "a\0b"])
def test_nothing_is_written_outside_the_folder(world: World, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"

    with pytest.raises(Misconfigured, match="not a plain file name"):
        world.run(download("cad_1", folder, None, world.pace, 60), look(artifact(name, STEP, "https://b")))

    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert list(folder.iterdir()) == []


def test_a_failed_job_has_nothing_to_fetch_but_its_reason(world: World, tmp_path: Path) -> None:
    with pytest.raises(JobFailed):
        world.run(download("cad_1", tmp_path, None, world.pace, 60), look(status="failed"))


def test_a_job_that_runs_has_nothing_to_fetch_yet(world: World, tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="is processing"):
        world.run(download("cad_1", tmp_path, None, world.pace, 60), look(status="processing"))
