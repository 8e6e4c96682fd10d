"""What a .glb holds comes out as the specification says, and what it cannot hold is refused."""

from __future__ import annotations

import copy
import io
import math
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import numpy as np
import pytest
import trimesh
from PIL import Image
from trimesh.visual.material import PBRMaterial
from trimesh.visual.texture import TextureVisuals

from tempa.core.errors import TempaError
from tempa.engines.splat.mesh import glb, materials, surface, texture
from tests.unit.splat.mesh import documents
from tests.unit.splat.mesh.documents import TRIANGLE, document

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def refusal(tree: dict[str, Any], binary: bytes) -> TempaError:
    with pytest.raises(TempaError) as caught:
        glb.read(documents.glb(tree, binary))
    assert caught.value.code == "IMPORT_FAILED"
    return caught.value


def exported(mesh: trimesh.Trimesh) -> bytes:
    data = mesh.export(file_type="glb")
    assert isinstance(data, bytes)
    return data


def test_a_triangle_comes_out_as_it_went_in() -> None:
    found = glb.read(documents.glb(*document()))

    assert found.corners.tolist() == [TRIANGLE.tolist()]
    assert found.paints[0].even


def test_another_programs_file_has_the_same_triangles() -> None:
    mesh = trimesh.creation.torus(1.0, 0.3)

    found = glb.read(exported(mesh))

    np.testing.assert_allclose(found.corners, mesh.triangles, atol=1e-6)


def test_nodes_place_meshes_one_upon_the_other() -> None:
    """Scaled by 2, then a quarter turn about y, then moved; below a matrix that moves up by 10."""
    half = math.sqrt(0.5)
    tree, data = document()
    lift = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 10, 0, 1]
    placed = {"mesh": 0, "scale": [2, 2, 2], "rotation": [0, half, 0, half], "translation": [5, 0, 0]}
    tree["nodes"] = [{"matrix": lift, "children": [1]}, placed]

    found = glb.read(documents.glb(tree, data))

    np.testing.assert_allclose(found.corners[0], [(5, 10, 0), (5, 10, -2), (5, 12, 0)], atol=1e-12)


def test_a_mirrored_mesh_still_faces_out() -> None:
    tree, data = document()
    tree["nodes"] = [{"mesh": 0, "scale": [-1, 1, 1]}]

    assert glb.read(documents.glb(tree, data)).crosses[0, 2] > 0.0


@pytest.mark.parametrize(
    ("mode", "faces"), [(4, [(0, 1, 2)]), (5, [(0, 1, 2), (1, 3, 2)]), (6, [(1, 2, 0), (2, 3, 0)]), (0, [])]
)
def test_strips_and_fans_are_triangles_and_points_are_none(mode: int, faces: list[tuple[int, ...]]) -> None:
    corners = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)], "<f4")
    tree, data = document(corners)
    tree["meshes"][0]["primitives"][0]["mode"] = mode

    found = glb.read(documents.glb(tree, data))

    assert found.corners.tolist() == [corners[list(face)].tolist() for face in faces]


def test_colours_of_corners_and_of_the_material_multiply() -> None:
    colors = np.array([(255, 0, 0, 255)] * 3, np.uint8)
    tree, data = document()
    tree["bufferViews"].append({"buffer": 0, "byteOffset": len(data), "byteLength": 12})
    tree["accessors"].append(
        {"bufferView": 1, "componentType": 5121, "normalized": True, "type": "VEC4", "count": 3}
    )
    tree["meshes"][0]["primitives"][0] |= {"attributes": {"POSITION": 0, "COLOR_0": 1}, "material": 0}
    tree["materials"] = [{"pbrMetallicRoughness": {"baseColorFactor": [0.5, 1, 1, 1]}}]

    found = glb.read(documents.glb(tree, data + colors.tobytes()))

    assert found.colors[0, 0].tolist() == [1.0, 0.0, 0.0, 1.0]
    factor = found.paints[0].factor
    assert factor is not None
    assert factor.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert not found.paints[0].even


def test_a_texture_in_the_file_is_read() -> None:
    mesh = trimesh.Trimesh(TRIANGLE, [(0, 1, 2)], process=False)
    picture = Image.fromarray(np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (9, 9, 9)]], np.uint8))
    material = PBRMaterial(baseColorTexture=picture)  # type: ignore[no-untyped-call]
    mesh.visual = TextureVisuals(  # type: ignore[no-untyped-call]
        uv=[(0, 0), (1, 0), (0, 1)], material=material
    )

    found = glb.read(exported(mesh))

    np.testing.assert_allclose(found.uvs[0], [(0, 1), (1, 1), (0, 0)])  # trimesh has v upwards, glTF down
    texture = found.paints[0].texture
    assert texture is not None
    assert texture[..., :3].tolist() == np.asarray(picture).tolist()


def test_a_moved_texture_is_moved() -> None:
    moved = {"offset": [0, 1], "rotation": math.pi / 2, "scale": [2, 2]}
    place = materials._place({"extensions": {"KHR_texture_transform": moved}})

    # The extension's own words: scale, then turn counter-clockwise about the upper left, then move.
    np.testing.assert_allclose(
        place.applied(np.array([(0.25, 0.0), (0.0, 0.25)])), [(0, 0.5), (0.5, 1)], atol=1e-9
    )


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *way, last = [int(word) if word.isdigit() else word for word in path.split("/")]

    def apply(tree: dict[str, Any]) -> None:
        place: Any = tree
        for word in way:
            place = place[word]
        place[last] = value

    return apply


HOSTILE = {
    "more values than there are": change("accessors/0/count", 10**12),
    "a count below nought": change("accessors/0/count", -3),
    "a count that is no number": change("accessors/0/count", "3"),
    "an offset beyond": change("accessors/0/byteOffset", 30),
    "a view beyond the file": change("bufferViews/0/byteLength", 10**9),
    "a view of no buffer": change("bufferViews/0/buffer", 4),
    "a stride below the size": change("bufferViews/0/byteStride", 1),
    "an accessor without a view": change(
        "accessors/0", {"componentType": 5126, "type": "VEC3", "count": 10**9}
    ),
    "a sparse accessor": change("accessors/0/sparse", {"count": 1}),
    "a type of its own": change("accessors/0/type", "MAT9"),
    "a buffer elsewhere": change("buffers/0/uri", "/etc/passwd"),
    "a buffer on the net": change("buffers/0/uri", "http://127.0.0.1:9/x"),
    "a node in itself": change("nodes/0/children", [0]),
    "a node twice": change("scenes/0/nodes", [0, 0]),
    "a mesh that is not there": change("nodes/0/mesh", 7),
    "a mesh by name": change("nodes/0/mesh", "mesh"),
    "primitives that are a number": change("meshes/0/primitives", 5),
    "a matrix too short": change("nodes/0/matrix", [1, 2, 3]),
    "a list for an object": change("meshes/0", []),
    "an unknown extension": change("extensionsRequired", ["KHR_draco_mesh_compression"]),
    "an index below nought": change(
        "meshes/0/primitives/0",
        {"attributes": {"POSITION": 0}, "indices": 1},
    ),
    "a material that is not there": change("meshes/0/primitives/0/material", 0),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused(what: str) -> None:
    tree, data = document()
    tree = copy.deepcopy(tree)
    # Beside the triangle lie three numbers, 0, 1 and -1: an honest file has them as no indices.
    tree["accessors"].append({"bufferView": 1, "componentType": 5120, "type": "SCALAR", "count": 3})
    tree["bufferViews"].append({"buffer": 0, "byteOffset": len(data), "byteLength": 3})
    assert len(glb.read(documents.glb(tree, data + b"\x00\x01\xff"))) == 1
    HOSTILE[what](tree)

    refusal(tree, data + b"\x00\x01\xff")


@pytest.mark.parametrize(("name", "value"), [("count", 10**12), ("count", 4), ("byteOffset", 1)])
def test_an_accessor_beyond_its_view_is_told(name: str, value: int) -> None:
    tree, data = document()
    tree["accessors"][0][name] = value

    assert "reaches beyond its buffer view" in refusal(tree, data).message


def test_an_extension_that_is_needed_is_named() -> None:
    tree, data = document(extensionsRequired=["KHR_draco_mesh_compression"])

    assert refusal(tree, data).detail == {"extensions": ["KHR_draco_mesh_compression"]}


@pytest.mark.parametrize("uri", ["/etc/hostname", "texture.png", "data:image/png;base64,AAAA"])
def test_a_texture_elsewhere_is_not_opened(uri: str) -> None:
    tree, data = document()
    tree["meshes"][0]["primitives"][0]["material"] = 0
    tree["materials"] = [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]
    tree |= {"textures": [{"source": 0}], "images": [{"uri": uri}]}

    assert "another file" in refusal(tree, data).message


def test_a_nest_of_instances_is_counted_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """300 nodes of one mesh of one triangle, where 299 are allowed."""
    monkeypatch.setattr(glb, "FACES_MAX", 299)
    tree, data = document()
    tree["nodes"] = [{"mesh": 0}] * 300
    tree["scenes"] = [{"nodes": list(range(300))}]

    assert refusal(tree, data).detail == {"limit": 299}


def test_primitives_are_counted_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock(return_value=surface.part(TRIANGLE[None], surface.Paint()))
    monkeypatch.setattr(glb, "_primitive", made)
    monkeypatch.setattr(glb, "FACES_MAX", 2)
    tree, data = document()
    tree["meshes"][0]["primitives"] *= 3

    assert refusal(tree, data).detail == {"limit": 2}
    assert made.call_count == 2


def test_a_mesh_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes show it."""
    mesh = Mock(wraps=glb._mesh)
    monkeypatch.setattr(glb, "_mesh", mesh)
    tree, data = document()
    tree["nodes"] = [{"mesh": 0}] * 3
    tree["scenes"] = [{"nodes": [0, 1, 2]}]

    assert len(glb.read(documents.glb(tree, data))) == 3
    assert mesh.call_count == 1


def textured(pictures: Sequence[bytes], sources: Sequence[int]) -> tuple[dict[str, Any], bytes]:
    """A triangle for each of `sources`, each with a material of its own that shows this picture."""
    tree, data = document()
    tree["images"] = []
    for picture in pictures:
        tree["images"].append({"bufferView": len(tree["bufferViews"])})
        tree["bufferViews"].append({"buffer": 0, "byteOffset": len(data), "byteLength": len(picture)})
        data += picture
    tree["textures"] = [{"source": source} for source in sources]
    tree["materials"] = [
        {"pbrMetallicRoughness": {"baseColorTexture": {"index": k}}} for k in range(len(sources))
    ]
    tree["meshes"][0]["primitives"] = [
        {"attributes": {"POSITION": 0}, "material": k} for k in range(len(sources))
    ]
    return tree, data


def png(side: int = 4) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG")
    return file.getvalue()


def test_a_texture_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many materials show it."""
    decode = Mock(wraps=texture.decode)
    monkeypatch.setattr(texture, "decode", decode)

    glb.read(documents.glb(*textured([png()], [0, 0, 0])))

    decode.assert_called_once_with(png())


def test_textures_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(materials, "PIXELS_MAX", 40)

    assert len(glb.read(documents.glb(*textured([png(), png()], [0, 1])))) == 2
    assert refusal(*textured([png(), png(), png()], [0, 1, 2])).detail == {"pixels": 48, "limit": 40}


@pytest.mark.parametrize(
    ("told", "opaque_from"),
    [
        ({}, 0.0),
        ({"alphaMode": "OPAQUE"}, 0.0),
        ({"alphaMode": "MASK"}, 0.5),
        ({"alphaMode": "MASK", "alphaCutoff": 0.25}, 0.25),
        ({"alphaMode": "BLEND"}, None),
    ],
    ids=str,
)
def test_opacity_counts_where_the_material_says_so(told: dict[str, Any], opaque_from: float | None) -> None:
    tree, data = document()
    tree["meshes"][0]["primitives"][0]["material"] = 0
    tree["materials"] = [told]

    assert glb.read(documents.glb(tree, data)).paints[0].opaque_from == opaque_from


@pytest.mark.parametrize("share", [0.0, 0.01, 0.04, 0.3, 0.9, 0.99])
def test_a_file_cut_short_is_refused(share: float) -> None:
    data = documents.glb(*document())
    with pytest.raises(TempaError) as caught:
        glb.read(data[: int(share * len(data))])

    assert caught.value.code == "IMPORT_FAILED"


def test_a_scene_of_nothing_has_no_triangles() -> None:
    assert len(glb.read(documents.glb({"asset": {"version": "2.0"}}))) == 0


def test_surfaces_joined_keep_their_paints() -> None:
    red, blue = (surface.Paint(factor=np.array(color)) for color in ((1, 0, 0, 1), (0, 0, 1, 1)))
    parts = [surface.part(TRIANGLE[None], paint) for paint in (red, blue, red)]

    found = surface.joined(parts)

    assert found.paints == (red, blue)
    assert found.paint.tolist() == [0, 1, 0]
