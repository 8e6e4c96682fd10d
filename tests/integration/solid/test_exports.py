"""The files, read by others than those who wrote them, and written twice to the same bytes."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
import subprocess
import sys
import zipfile
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import trimesh
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox

from tempa.core.errors import TempaError
from tempa.engines.solid import opencascade
from tempa.engines.solid.exports import brep, glb, step, stl, threemf
from tempa.engines.solid.exports.mesh import Mesh, weld
from tempa.engines.solid.exports.tessellate import TRIANGLES_MAX, tessellate
from tempa.engines.solid.facets.flanged_tube import Facets
from tempa.engines.solid.facets.triangulation import Triangulation
from tempa.engines.solid.templates.tube import Tube
from tests.integration.solid.sample import FORMATS, PARAMETERS, VOLUME, work

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_SECONDS = 60.0
LINEAR = 0.1

# Reads a STEP file with nothing of ours: its volume and what it consists of.
READ_STEP = """
import json, sys
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepGProp import BRepGProp
from OCP.GProp import GProp_GProps
from OCP.STEPControl import STEPControl_Reader
reader = STEPControl_Reader()
status = reader.ReadFile(sys.argv[1])
assert status.name == "IFSelect_RetDone", status
reader.TransferRoots()
shape = reader.OneShape()
properties = GProp_GProps()
BRepGProp.VolumeProperties_s(shape, properties)
valid = BRepCheck_Analyzer(shape).IsValid()
told = {"volume": properties.Mass(), "kind": shape.ShapeType().name, "valid": valid}
open(sys.argv[2], "w").write(json.dumps(told))
"""

WRITE_TWICE = """
import hashlib, json, sys
from pathlib import Path
from tempa.engines.solid import opencascade
from tests.integration.solid.sample import FORMATS, work
opencascade.load()
folder, hashes = Path(sys.argv[1]), []
for formats in (FORMATS, FORMATS[::-1]):
    made = opencascade.run(work(export_formats=formats), folder, lambda stage, fraction=None: None)
    contents = {file.file_format: (folder / file.name).read_bytes() for file in made.files}
    hashes.append({name: hashlib.sha256(content).hexdigest() for name, content in contents.items()})
(folder / "hashes.json").write_text(json.dumps(hashes))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example in every format."""
    folder = tmp_path_factory.mktemp("made")
    opencascade.load()
    opencascade.run(work(export_formats=FORMATS), folder, lambda stage, fraction=None: None)
    return folder


def example_mesh() -> Mesh:
    tube = Tube.of(PARAMETERS)
    return tessellate(tube, linear=LINEAR, angular=20.0, reference=tube.reference)


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return example_mesh()


# --- read by others ---------------------------------------------------------------------------------------


def read_step(path: Path, answer: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", READ_STEP, str(path), str(answer)]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS)
    read: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return read


def test_another_process_reads_the_step_file_as_the_part_of_the_contract(made: Path, tmp_path: Path) -> None:
    read = read_step(made / "model.step", tmp_path / "read.json")
    assert read["kind"] == "TopAbs_SOLID"
    assert read["valid"]
    assert read["volume"] == pytest.approx(VOLUME, rel=1e-9)


def test_a_fillet_larger_than_its_flat_loses_nothing_in_step(tmp_path: Path) -> None:
    """Told as a torus, which crosses its own axis, the writer would approximate it by a spline."""
    parameters = {
        "outer_diameter": 2.0,
        "inner_diameter": 0.2,
        "length": 2.0,
        "fillet_radius": 0.85,
        "hole_pattern": None,
    }
    opencascade.run(work(parameters=parameters), tmp_path, lambda stage, fraction=None: None)
    flat, corner = 1.0 - 0.85, 1.0 - math.pi / 4.0
    rounded_off = 4.0 * math.pi * (flat + 0.85 / (6.0 * corner)) * 0.85**2 * corner
    volume = math.pi * (1.0 - 0.01) * 2.0 - rounded_off
    read = read_step(tmp_path / "model.step", tmp_path / "read.json")
    assert read["volume"] == pytest.approx(volume, rel=1e-9)
    assert b"B_SPLINE" not in (tmp_path / "model.step").read_bytes()


def test_the_step_header_tells_neither_time_nor_place(made: Path) -> None:
    text = (made / "model.step").read_text(encoding="ascii")
    header = re.sub(r"\s", "", text[: text.index("ENDSEC")])
    assert "FILE_NAME('model.step','1970-01-01T00:00:00',('')," in header
    assert "#7 = PRODUCT('model','model',''," in text
    assert "SI_UNIT(.MILLI.,.METRE.)" in text


def within_tolerance(volume: float) -> bool:
    """A mesh within LINEAR of the part's surface (230,396 mm2) misses less than their product."""
    return abs(volume - VOLUME) < LINEAR * 230396.0


def test_trimesh_reads_the_stl_file_as_a_watertight_part(made: Path) -> None:
    read = trimesh.load_mesh(made / "model.stl")
    assert read.is_watertight
    assert read.is_winding_consistent
    assert within_tolerance(read.volume)
    assert read.bounds == pytest.approx(np.array([[-60.25, -60.25, 0.0], [60.25, 60.25, 300.0]]), abs=LINEAR)
    assert (made / "model.stl").read_bytes()[:80] == stl.HEADER
    stored = np.frombuffer((made / "model.stl").read_bytes()[84:], np.dtype("<3f4, <9f4, <u2"))["f0"]
    assert np.allclose(stored, read.face_normals, atol=1e-5)


def test_trimesh_reads_the_glb_file_in_metres_and_with_y_up(made: Path) -> None:
    read = trimesh.load_scene(made / "model.glb").to_mesh()
    read.merge_vertices(merge_norm=True)
    assert read.is_watertight
    assert within_tolerance(read.volume * 1e9)
    expected = np.array([[-0.06025, 0.0, -0.06025], [0.06025, 0.3, 0.06025]])
    assert read.bounds == pytest.approx(expected, abs=LINEAR / 1000.0)


def test_the_glb_files_normals_are_those_of_the_exact_surface(made: Path) -> None:
    """On the outer cylinder they point away from the axis; facets would be 10 degrees off."""
    read = trimesh.load_scene(made / "model.glb", process=False)
    (geometry,) = read.geometry.values()
    points, normals = geometry.vertices * 1000.0, geometry.vertex_normals
    assert np.allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-6)
    radius = np.hypot(points[:, 0], points[:, 1])
    outside = (radius > 60.2499) & (points[:, 2] > 2.6) & (points[:, 2] < 297.4)
    rims = (radius > 60.2499) & ~outside
    for chosen in (outside, rims):
        if chosen.any():
            away = points[chosen, :2] / radius[chosen, None]
            assert np.allclose(normals[chosen, :2], away, atol=1e-4)
    bottom = (points[:, 2] == 0.0) & (np.abs(normals[:, 2]) > 0.5)
    assert (normals[bottom, 2] < -0.99).all()


def test_trimesh_reads_the_3mf_file_as_a_watertight_part(made: Path) -> None:
    with zipfile.ZipFile(made / "model.3mf") as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert archive.namelist() == ["[Content_Types].xml", "_rels/.rels", "3D/3dmodel.model"]
        model = trimesh.util.wrap_as_stream(archive.read("3D/3dmodel.model"))
    root = ET.parse(model).getroot()  # noqa: S314 - our own file
    assert root.get("unit") == "millimeter"
    tag = f"{{{threemf.CORE}}}"
    vertices = [[float(v.attrib[a]) for a in "xyz"] for v in root.iter(f"{tag}vertex")]
    faces = [[int(t.attrib[a]) for a in ("v1", "v2", "v3")] for t in root.iter(f"{tag}triangle")]
    read = trimesh.Trimesh(vertices, faces, process=False)
    assert read.is_watertight
    assert read.is_winding_consistent
    assert within_tolerance(read.volume)


def test_the_brep_file_is_the_same_whether_the_part_was_meshed_or_not(made: Path, tmp_path: Path) -> None:
    opencascade.run(work(export_formats=["brep"]), tmp_path, lambda stage, fraction=None: None)
    assert (tmp_path / "model.brep").read_bytes() == (made / "model.brep").read_bytes()


# --- the same bytes ---------------------------------------------------------------------------------------


def test_two_processes_with_two_runs_each_write_the_same_bytes(made: Path, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    writers = [subprocess.Popen([sys.executable, "-c", WRITE_TWICE, str(folder)]) for folder in folders]
    assert [writer.wait(PATIENCE_SECONDS) for writer in writers] == [0, 0]
    here = {name: hashlib.sha256((made / f"model.{name}").read_bytes()).hexdigest() for name in FORMATS}
    for folder in folders:
        assert json.loads((folder / "hashes.json").read_text(encoding="utf-8")) == [here, here]


# --- opened again -----------------------------------------------------------------------------------------


def spoil(path: Path, at: int, value: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(value)] = value
    path.write_bytes(data)


def swap(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def other_box(path: Path) -> None:
    step.write(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0 * (1.0 + 3e-9)).Solid(), path)


def no_product(path: Path) -> None:
    swap(path, b"MANIFOLD_SOLID_BREP", b"MANIFOLD_SOLID_BREQ")


@pytest.mark.parametrize(
    "harm",
    [lambda path: path.write_bytes(b""), lambda path: path.unlink(), cut, no_product, other_box],
    ids=["empty", "gone", "cut off", "no solid", "another volume"],
)
def test_a_step_file_that_reads_back_otherwise_is_refused(
    harm: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "model.step"
    step.write(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Solid(), path)
    step.verify(path, volume=6000.0, allowance=6e-6)
    harm(path)
    with pytest.raises(TempaError) as refused:
        step.verify(path, volume=6000.0, allowance=6e-6)
    assert refused.value.code == "EXPORT_FAILED"


def test_a_brep_file_that_reads_back_otherwise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.brep"
    brep.write(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Solid(), path)
    brep.verify(path, volume=6000.0, allowance=6e-6)
    for volume, harm in (
        (6000.0 * (1.0 + 3e-9), lambda: None),
        (6000.0, lambda: path.write_bytes(b"CASCADE")),
    ):
        harm()
        with pytest.raises(TempaError) as refused:
            brep.verify(path, volume=volume, allowance=6e-6)
        assert refused.value.code == "EXPORT_FAILED"


@pytest.mark.parametrize(("value", "apart"), [(83705.5, 1e-10), (0.5, 1e-15), (1000.0, 1e-11)])
def test_brep_files_are_asked_for_fifteen_digits(value: float, apart: float) -> None:
    """Where an edge ends is written so: what lies between is rounded to one of two neighbours."""
    assert brep.spacing(value) == pytest.approx(apart, rel=1e-12)
    assert float(f"{value + 0.6 * apart:.15g}") == pytest.approx(value + apart, abs=0.01 * apart)


HARMS: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "stl: count": (stl, lambda path: spoil(path, 80, b"\1\0\0\0")),
    "stl: coordinate": (stl, lambda path: spoil(path, 84 + 12, struct.pack("<f", 1.0))),
    "stl: cut off": (stl, cut),
    "stl: empty": (stl, lambda path: path.write_bytes(b"")),
    "glb: magic": (glb, lambda path: spoil(path, 0, b"gltf")),
    "glb: length": (glb, lambda path: spoil(path, 8, b"\0\0\0\1")),
    "glb: kind of chunk": (glb, lambda path: spoil(path, 16, b"TEXT")),
    "glb: accessor": (glb, lambda path: swap(path, b'"count":', b'"cuont":')),
    "glb: extent": (glb, lambda path: swap(path, b'"max":[0', b'"max":[1')),
    "glb: cut off": (glb, cut),
    "glb: nearly empty": (glb, lambda path: path.write_bytes(b"glTF")),
    "3mf: checksum": (threemf, lambda path: spoil(path, 900, b"\0\0\0\0")),
    "3mf: cut off": (threemf, cut),
    "3mf: empty": (threemf, lambda path: path.write_bytes(b"")),
}


@pytest.mark.parametrize(("form", "harm"), HARMS.values(), ids=HARMS)
def test_a_mesh_file_that_reads_back_otherwise_is_refused(
    form: Any, harm: Callable[[Path], None], mesh: Mesh, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    form.write(mesh, path)
    form.verify(path, mesh)
    harm(path)
    with pytest.raises(TempaError) as refused:
        form.verify(path, mesh)
    assert refused.value.code == "EXPORT_FAILED"


@pytest.mark.parametrize("form", [stl, glb, threemf], ids=["stl", "glb", "3mf"])
def test_the_file_of_another_mesh_is_refused(form: Any, mesh: Mesh, tmp_path: Path) -> None:
    moved = weld([Triangulation(array("d", [v + 1.0 for v in mesh.points]), mesh.normals, mesh.triangles)])
    form.write(moved, tmp_path / "model")
    with pytest.raises(TempaError):
        form.verify(tmp_path / "model", mesh)


# --- the mesh ---------------------------------------------------------------------------------------------


TETRAHEDRON = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
CLOSED = [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]


def small(points: list[float], triangles: list[int]) -> Mesh:
    normals = array("f", [0.0, 0.0, 1.0] * (len(points) // 3))
    return weld([Triangulation(array("d", points), normals, array("I", triangles))])


@pytest.mark.parametrize(
    ("triangles", "watertight"),
    [
        (CLOSED, True),
        (CLOSED[:9], False),
        ([*CLOSED, 0, 2, 1], False),
        ([*CLOSED[:9], 0, 2, 3], False),
        ([], False),
    ],
    ids=["closed", "open", "a triangle twice", "one the wrong way round", "none"],
)
def test_watertight_is_two_triangles_at_every_edge(triangles: list[int], *, watertight: bool) -> None:
    assert small(TETRAHEDRON, triangles).watertight is watertight


def test_the_volume_of_a_mesh_has_its_sign() -> None:
    assert small(TETRAHEDRON, CLOSED).volume == pytest.approx(1.0 / 6.0)
    assert small(TETRAHEDRON, CLOSED[::-1]).volume == pytest.approx(-1.0 / 6.0)


def test_points_that_fall_together_in_32_bits_are_one_vertex_and_leave_no_sliver() -> None:
    points = [*TETRAHEDRON, 1.0 + 1e-9, 0.0, 0.0]
    split = [0, 2, 4, 0, 1, 3, 1, 2, 3, 0, 3, 2, 4, 2, 1, 0, 4, 1]
    mesh = small(points, split)
    assert (len(mesh.vertices) // 3, mesh.triangle_count) == (4, 4)
    assert mesh.watertight


def test_a_mesh_that_is_not_the_parts_is_refused() -> None:
    tube = Tube.of(PARAMETERS)
    other = replace(tube.reference, volume=VOLUME * 1.01)
    with pytest.raises(TempaError) as refused:
        tessellate(tube, linear=LINEAR, angular=20.0, reference=other)
    assert refused.value.code == "TESSELLATION_FAILED"
    assert refused.value.detail["volume"] == pytest.approx(VOLUME * 1.01)
    assert within_tolerance(refused.value.detail["mesh_volume"])


def test_a_mesh_too_fine_to_make_is_refused_before_it_is_made_with_a_tolerance_that_would_do() -> None:
    """As asked it would take 6e9 triangles: had it begun, this test would not end."""
    tube = Tube(5e5, 2e5, 1e6, 2.5e5)
    with pytest.raises(TempaError) as refused:
        tessellate(tube, linear=1e-3, angular=1.0, reference=tube.reference)
    assert refused.value.code == "TESSELLATION_FAILED"
    linear, angular = (refused.value.detail[name] for name in ("linear", "angular"))
    assert TRIANGLES_MAX / 5 < Facets(tube, linear=linear, angular=angular).count <= TRIANGLES_MAX
    assert refused.value.hint is not None
    assert f"{linear:.6g}" in refused.value.hint


def test_the_most_triangles_are_still_made(monkeypatch: pytest.MonkeyPatch) -> None:
    tube = Tube.of(PARAMETERS)
    count = Facets(tube, linear=LINEAR, angular=20.0).count
    monkeypatch.setattr("tempa.engines.solid.exports.tessellate.TRIANGLES_MAX", count)
    assert example_mesh().triangle_count <= count
    monkeypatch.setattr("tempa.engines.solid.exports.tessellate.TRIANGLES_MAX", count - 1)
    with pytest.raises(TempaError) as refused:
        example_mesh()
    assert refused.value.detail["limit"] == count - 1


def test_details_that_32_bits_cannot_tell_apart_are_refused_with_what_would_do() -> None:
    """A wall of 1e-3 mm half a kilometre from the axis, where 32-bit numbers lie 0.03 mm apart."""
    tube = Tube(5e5, 5e5 - 1e-3, 100.0)
    with pytest.raises(TempaError) as refused:
        tessellate(tube, linear=LINEAR, angular=20.0, reference=tube.reference)
    assert refused.value.code == "TESSELLATION_FAILED"
    assert "step or brep" in str(refused.value.hint)
