"""A mesh is known by its content; nothing but its own bytes is read."""

from __future__ import annotations

import builtins
import socket
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import trimesh
from trimesh.visual.color import ColorVisuals

from tempa.core.errors import TempaError
from tempa.engines.splat.mesh import parsed, reading, stl

if TYPE_CHECKING:
    from pathlib import Path

BOX = trimesh.creation.box((1, 2, 3))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "mesh"
    path.write_bytes(data)
    return path


def exported(mesh: trimesh.Trimesh, kind: str, **options: Any) -> bytes:
    data = mesh.export(file_type=kind, **options)
    assert not isinstance(data, dict)
    return data.encode() if isinstance(data, str) else data


def refusal(folder: Path, data: bytes) -> TempaError:
    with pytest.raises(TempaError) as caught:
        reading.read(written(folder, data))
    assert caught.value.code == "IMPORT_FAILED"
    return caught.value


@pytest.mark.parametrize(
    ("kind", "told", "options"),
    [
        ("stl", "stl", {}),
        ("stl_ascii", "stl", {}),
        ("obj", "obj", {}),
        ("ply", "ply", {}),
        ("ply", "ply", {"encoding": "ascii"}),
        ("glb", "glb", {}),
    ],
)
def test_another_programs_file_is_known_and_read(
    tmp_path: Path, kind: str, told: str, options: dict[str, Any]
) -> None:
    found, name = reading.read(written(tmp_path, exported(BOX, kind, **options)))

    assert name == told
    np.testing.assert_allclose(found.corners, BOX.triangles, atol=1e-6)


@pytest.mark.parametrize("kind", ["ply", "obj"])
def test_colours_of_vertices_are_taken_as_srgb(tmp_path: Path, kind: str) -> None:
    mesh = trimesh.Trimesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], process=False)
    mesh.visual = ColorVisuals(mesh, vertex_colors=[(255, 0, 128, 255)] * 3)

    found, _ = reading.read(written(tmp_path, exported(mesh, kind)))

    np.testing.assert_allclose(found.colors[0, 0], (1.0, 0.0, 0.2158605, 1.0), atol=1e-5)
    assert not found.paints[0].even


def test_polygons_of_an_obj_become_triangles(tmp_path: Path) -> None:
    text = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n"

    found, _ = reading.read(written(tmp_path, text))

    assert np.linalg.norm(found.crosses, axis=1).sum() / 2 == pytest.approx(1.0)


def test_nothing_but_its_own_bytes_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the material library beside it, nor one elsewhere, nor one on the net."""
    (tmp_path / "beside.mtl").write_text("newmtl red\nKd 1 0 0\nmap_Kd /etc/hostname\n")
    text = b"mtllib beside.mtl\nmtllib /etc/hostname\nmtllib http://127.0.0.1:9/x.mtl\nusemtl red\n"
    path = written(tmp_path, text + exported(BOX, "obj"))
    data = path.read_bytes()

    opened: list[Any] = []

    def refuse(*arguments: Any, **options: Any) -> Any:
        opened.append(arguments)  # the parser goes on without a library that it cannot open
        raise OSError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(socket, "socket", refuse)

    assert len(parsed.read(data, "obj")) == 12
    assert opened == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"ISO-10303-21;",
        b"hello",
        b"PK\3\4" + bytes(60),
        bytes(84) + bytes(49),
    ],
)
def test_what_is_no_mesh_is_refused(tmp_path: Path, data: bytes) -> None:
    assert "no GLB, STL, OBJ or PLY" in refusal(tmp_path, data).message


MALFORMED = {
    "a ply of a great many": b"ply\nformat binary_little_endian 1.0\nelement vertex 1000000000000\n"
    b"property float x\nproperty float y\nproperty float z\nend_header\n",
    "a ply without an end": b"ply\nformat ascii 1.0\nelement vertex 3\n",
    "a ply with a face beyond": b"ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\n"
    b"property float y\nproperty float z\nelement face 1\nproperty list uchar int vertex_indices\n"
    b"end_header\n0 0 0\n3 0 1 2\n",
    "an obj with a face beyond": b"v 0 0 0\nf 1 2 3\n",
    "an obj of words": b"v a b c\nf 1 2 3\n",
    "an stl of words": b"solid x\nfacet normal 0 0 1\nouter loop\nvertex a b c\nendloop\nendfacet\n",
    "an stl of two corners": b"solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\n",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_file_is_refused(tmp_path: Path, what: str) -> None:
    refusal(tmp_path, MALFORMED[what])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e31])
def test_a_coordinate_beyond_measure_is_refused(tmp_path: Path, value: float) -> None:
    mesh = BOX.copy()
    data = bytearray(exported(mesh, "stl"))
    data[96:100] = struct.pack("<f", value)

    assert refusal(tmp_path, bytes(data)).detail["triangles"] == 1


def test_too_many_triangles_are_refused_by_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stl, "FACES_MAX", 11)

    assert refusal(tmp_path, exported(BOX, "stl")).detail == {"triangles": 12, "limit": 11}


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SIZE_BYTES_MAX", 100)

    assert refusal(tmp_path, bytes(101)).detail == {"size_bytes": 101, "limit": 100}


@pytest.mark.parametrize("kind", ["stl", "obj", "ply", "glb"])
def test_files_with_bytes_changed_are_read_or_refused(tmp_path: Path, kind: str) -> None:
    """60 files with a few bytes changed, cut or doubled: no other exception comes of them."""
    data = exported(BOX, kind)
    dice = np.random.default_rng(7)
    outcomes = []
    for _ in range(60):
        bad = bytearray(data)
        for place in dice.integers(0, len(bad), 4):
            bad[place] = dice.integers(0, 256)
        cut = int(dice.integers(1, len(bad)))
        try:
            reading.read(written(tmp_path, bytes(bad[:cut] if dice.random() < 0.3 else bad)))
            outcomes.append("read")
        except TempaError as error:
            outcomes.append(error.code)

    assert "IMPORT_FAILED" in outcomes
    assert set(outcomes) <= {"read", "IMPORT_FAILED"}
