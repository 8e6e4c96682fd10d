"""The engine `mesh-splat` from a file to files: closed, upright, the same bytes every time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gsply
import numpy as np
import pytest
import trimesh
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat import mesh_splat
from tempa.engines.splat.formats import files
from tempa.engines.splat.gaussians import Gaussians
from tempa.engines.splat.mesh.discs import covered
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.raster.render import render

DEFAULTS: dict[str, Any] = {
    "num_gaussians": 20_000,
    "seed": 0,
    "color": [0.72, 0.74, 0.78],
    "up_axis": "auto",
    "shading": "auto",
}
SPHERE = trimesh.creation.icosphere(subdivisions=5, radius=7.0)


def work(*formats: str, **parameters: Any) -> dict[str, Any]:
    return {
        "parameters": DEFAULTS | parameters,
        "export_formats": list(formats or ("ply",)),
        "preview": {"width": 64, "height": 64, "turntable_frames": 0},
    }


def laid(folder: Path, data: bytes) -> Path:
    (folder / "inputs").mkdir()
    (folder / "inputs" / "mesh").write_bytes(data)
    return folder


def stl(mesh: trimesh.Trimesh) -> bytes:
    data = mesh.export(file_type="stl")
    assert isinstance(data, bytes)
    return data


def obj(vertices: np.ndarray, faces: np.ndarray) -> bytes:
    """With digits enough for any scale."""
    lines = [f"v {x:.9e} {y:.9e} {z:.9e}" for x, y, z in vertices]
    return "\n".join([*lines, *(f"f {a} {b} {c}" for a, b, c in faces + 1), ""]).encode()


def silent(stage: str, fraction: float | None = None) -> None:
    """No progress."""


def refusal(folder: Path, data: bytes, **parameters: Any) -> TempaError:
    with pytest.raises(TempaError) as caught:
        mesh_splat.run(work(**parameters), laid(folder, data), silent)
    return caught.value


def test_a_sphere_is_closed_and_round(tmp_path: Path) -> None:
    """No background inside its outline, and the outline is that of the sphere.

    It is 1.4 px wider all around, by the low-pass of splatting itself: finer discs do not change that.
    """
    mesh_splat.run(work(), laid(tmp_path, stl(SPHERE)), silent)
    camera = orbit(30.0, 20.0, 2.0, width=512, height=512, field_of_view_degrees=40.0)

    alpha = render(files.read(tmp_path / "model.ply"), camera).alpha

    rows, columns = np.mgrid[0:512, 0:512] + 0.5 - 256.0
    radius = camera.focal_pixels * math.tan(math.asin(0.5 / 2.0))  # the cone that touches the sphere
    from_middle = np.hypot(rows, columns)
    drawn, disc = alpha > 0.5, from_middle < radius
    assert alpha[from_middle < radius - 3.0].min() > 0.99
    assert (drawn & disc).sum() / (drawn | disc).sum() >= 0.98


def test_measurements_tell_what_was_made(tmp_path: Path) -> None:
    measured = mesh_splat.run(work(), laid(tmp_path, stl(SPHERE)), silent).measurements

    assert measured["gaussians"] == 20_000
    assert measured["method"] == "mesh"
    assert measured["mesh"] == {"format": "stl", "triangles": 20_480, "up_axis": "z"}
    assert measured["normalization"]["scale"] == pytest.approx(1.0 / 14.0, rel=1e-6)
    np.testing.assert_allclose(measured["normalization"]["offset"], 0.0, atol=1e-6)
    assert max(measured["extent"]) == pytest.approx(1.0, abs=0.02)
    json.dumps(measured)


def test_every_file_asked_for_is_made(tmp_path: Path) -> None:
    report = mesh_splat.run(work("spz", "ply"), laid(tmp_path, stl(SPHERE)), silent)

    assert [file.role for file in report.files] == ["gaussian_ply", "spz", "rendered_preview"]
    assert len(gsply.plyread(str(tmp_path / "model.ply")).means) == 20_000
    with Image.open(tmp_path / "preview.png") as image:
        assert image.size == (64, 64)


@pytest.mark.parametrize(("up_axis", "tall"), [("auto", 1), ("z", 1), ("y", 2)])
def test_an_stl_stands_on_its_z_axis(tmp_path: Path, up_axis: str, tall: int) -> None:
    tower = trimesh.creation.box((1, 1, 4))

    extent = mesh_splat.run(work(up_axis=up_axis), laid(tmp_path, stl(tower)), silent).measurements["extent"]

    assert int(np.argmax(extent)) == tall


def test_stages_come_in_order_and_go_forward(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []

    def progress(stage: str, fraction: float | None = None) -> None:
        told.append((stage, fraction or 0.0))

    mesh_splat.run(work(), laid(tmp_path, stl(SPHERE)), progress)

    assert [stage for stage, _ in told] == ["reading", "sampling", "checking", "exporting", "rendering"]
    assert [fraction for _, fraction in told] == sorted(fraction for _, fraction in told)


def test_a_seed_moves_the_discs(tmp_path: Path) -> None:
    found: list[bytes] = []
    for seed in (0, 0, 1):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        mesh_splat.run(work(seed=seed), laid(folder, stl(SPHERE)), silent)
        found.append((folder / "model.ply").read_bytes())

    assert found[0] == found[1] != found[2]


def test_the_result_passes_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sheared(*given: Any, **options: Any) -> Gaussians:
        made = covered(*given, **options)
        made.rotations[:] *= 2.0
        return made

    monkeypatch.setattr(mesh_splat, "covered", sheared)

    assert refusal(tmp_path, stl(SPHERE)).code == "DEGENERATE_OUTPUT"
    assert not (tmp_path / "model.ply").exists()


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7", b"glTF" + bytes(20)])
def test_what_is_no_mesh_cannot_be_imported(tmp_path: Path, data: bytes) -> None:
    assert refusal(tmp_path, data).code == "IMPORT_FAILED"


POINT = trimesh.Trimesh([(0, 0, 0), (1, 1, 1), (2, 2, 2)], [(0, 1, 2), (0, 0, 0)], process=False)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e-25, 1e25])
def test_a_mesh_without_area_has_an_empty_result(tmp_path: Path, scale: float) -> None:
    corners = scale * POINT.vertices

    assert refusal(tmp_path, obj(corners, POINT.faces)).code == "EMPTY_RESULT"


def test_points_alone_have_an_empty_result(tmp_path: Path) -> None:
    refused = refusal(tmp_path, obj(POINT.vertices, np.zeros((0, 3), int)))
    assert (refused.code, "/v1/convert" in (refused.hint or "")) == ("EMPTY_RESULT", True)


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_a_unit_does_not_matter(tmp_path: Path, scale: float) -> None:
    box = trimesh.creation.box()
    data = obj(scale * box.vertices, box.faces)

    measured = mesh_splat.run(work(), laid(tmp_path, data), silent).measurements

    np.testing.assert_allclose(measured["extent"], 1.0, atol=0.02)


PROCESS = """
import sys
from pathlib import Path
from tempa.engines.splat import mesh_splat

mesh_splat.load()
print(len(list(Path("/proc/self/task").iterdir())))
mesh_splat.rehearse()
print(len(list(Path("/proc/self/task").iterdir())))
"""


def test_loading_leaves_one_thread() -> None:
    """As a zygote demands, in the surroundings that it has."""
    finished = subprocess.run(
        [sys.executable, "-c", PROCESS],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    assert finished.stdout.split() == ["1", "1"]


RUN = """
import json, sys
from pathlib import Path
from tempa.engines.splat import mesh_splat

mesh_splat.load()
mesh_splat.run(json.loads(sys.argv[1]), Path(sys.argv[2]), lambda stage, fraction=None: None)
"""


def test_another_process_on_one_core_makes_the_same_bytes(tmp_path: Path) -> None:
    asked = work("ply", "spz", "splat")
    asked["preview"] |= {"turntable_frames": 3}
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        folder.mkdir()
        laid(folder, stl(SPHERE))
    mesh_splat.run(asked, one, silent)

    core = str(min(os.sched_getaffinity(0)))
    subprocess.run(
        ["taskset", "-c", core, sys.executable, "-c", RUN, json.dumps(asked), str(other)],
        check=True,
        timeout=120,
        capture_output=True,
    )

    hashes = [
        {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.iterdir()
            if path.is_file()
        }
        for folder in (one, other)
    ]
    assert len(hashes[0]) == 5
    assert hashes[0] == hashes[1]
