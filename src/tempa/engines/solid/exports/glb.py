"""Binary glTF 2.0: one mesh in metres, with the surfaces' own normals.

glTF's unit is the metre and its up is +Y. Points are scaled as they are written, so that a reader
that ignores nodes has the size right; the part's axes stay as they are, and its node turns +Z up.
"""

from __future__ import annotations

import json
import math
import struct
from array import array
from typing import TYPE_CHECKING, Any

from tempa.engines.solid.exports.readback import different, same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tempa.engines.solid.exports.mesh import Mesh

MILLIMETRES_PER_METRE = 1000.0
Z_UP_TO_Y_UP = (-math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # quaternion: a quarter turn back about X
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_FLOAT, _UNSIGNED_INT = 5126, 5125
_VERTICES, _INDICES = 34962, 34963
# Without one, the default material is a mirror: black wherever the viewer has no surroundings.
_MATERIAL = {
    "pbrMetallicRoughness": {
        "baseColorFactor": [0.7, 0.72, 0.75, 1.0],
        "metallicFactor": 0.0,
        "roughnessFactor": 0.6,
    }
}


def write(mesh: Mesh, path: Path) -> None:
    """Write a mesh as one node with one primitive."""
    parts = _parts(mesh)
    binary = b"".join(part.tobytes() for part in parts)  # all of 4-byte numbers: aligned as they come
    text = json.dumps(_document(mesh, parts, len(binary)), separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    size = _HEADER.size + 2 * _CHUNK.size + len(text) + len(binary)
    header, first, second = (
        _HEADER.pack(b"glTF", 2, size),
        _CHUNK.pack(len(text), b"JSON"),
        _CHUNK.pack(len(binary), b"BIN\0"),
    )
    path.write_bytes(b"".join((header, first, text, second, binary)))


def _parts(mesh: Mesh) -> tuple[array[float], array[float], array[int]]:
    metres = array("f", [value / MILLIMETRES_PER_METRE for value in mesh.points])
    return metres, mesh.normals, mesh.triangles


def _document(mesh: Mesh, parts: Sequence[array[Any]], size_bytes: int) -> dict[str, Any]:
    points = parts[0]
    return {
        "asset": {"version": "2.0", "generator": "Tempa"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": "model", "mesh": 0, "rotation": Z_UP_TO_Y_UP}],
        "meshes": [
            {
                "name": "model",
                "primitives": [
                    {"attributes": {"POSITION": 0, "NORMAL": 1}, "indices": 2, "material": 0, "mode": 4}
                ],
            }
        ],
        "materials": [_MATERIAL],
        "accessors": [
            _accessor(0, _FLOAT, "VEC3", len(points) // 3) | _extent(points),
            _accessor(1, _FLOAT, "VEC3", len(mesh.normals) // 3),
            _accessor(2, _UNSIGNED_INT, "SCALAR", len(mesh.triangles)),
        ],
        "bufferViews": _views(parts),
        "buffers": [{"byteLength": size_bytes}],
    }


def _accessor(view: int, component: int, kind: str, count: int) -> dict[str, Any]:
    return {"bufferView": view, "componentType": component, "type": kind, "count": count}


def _extent(points: array[float]) -> dict[str, Any]:
    axes = [points[axis::3] for axis in range(3)]
    return {"min": [min(axis) for axis in axes], "max": [max(axis) for axis in axes]}


def _views(parts: Sequence[array[Any]]) -> list[dict[str, int]]:
    views, offset = [], 0
    for part, target in zip(parts, (_VERTICES, _VERTICES, _INDICES), strict=True):
        size = len(part) * part.itemsize
        views.append({"buffer": 0, "byteOffset": offset, "byteLength": size, "target": target})
        offset += size
    return views


def verify(path: Path, mesh: Mesh) -> None:
    """Read the file again: every accessor holds what the mesh holds, within the extent it tells.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    try:
        document, binary = _opened(path)
        found = [_values(document, number, binary) for number in range(3)]
        told = {name: document["accessors"][0][name] for name in ("min", "max")}
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise different(path, "structure") from error
    same(path, "numbers", wrote=[part.tobytes() for part in _parts(mesh)], found=[f.tobytes() for f in found])
    same(path, "extent", wrote=_extent(found[0]), found=told)
    if max(found[2]) >= document["accessors"][0]["count"]:
        raise different(path, "indices")


def _opened(path: Path) -> tuple[Mapping[str, Any], bytes]:
    data = path.read_bytes()
    same(path, "header", wrote=(b"glTF", 2, len(data)), found=_HEADER.unpack_from(data))
    text, end = _chunk(data, _HEADER.size, b"JSON")
    binary, end = _chunk(data, end, b"BIN\0")
    document = json.loads(text)
    same(path, "size", wrote=(len(data), document["buffers"][0]["byteLength"]), found=(end, len(binary)))
    return document, binary


def _chunk(data: bytes, start: int, kind: bytes) -> tuple[bytes, int]:
    size, found = _CHUNK.unpack_from(data, start)
    end = start + _CHUNK.size + size
    if found != kind or size % 4 or end > len(data):
        raise ValueError(kind)
    return data[start + _CHUNK.size : end], end


def _values(document: Mapping[str, Any], number: int, binary: bytes) -> array[Any]:
    accessor = document["accessors"][number]
    view = document["bufferViews"][accessor["bufferView"]]
    start, size = view["byteOffset"], view["byteLength"]
    values = array("f" if accessor["componentType"] == _FLOAT else "I", binary[start : start + size])
    width = 3 if accessor["type"] == "VEC3" else 1
    if len(values) != width * accessor["count"]:
        raise ValueError(number)
    return values
