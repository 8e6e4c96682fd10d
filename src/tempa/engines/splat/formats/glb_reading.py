"""Reading Gaussians out of any .glb with KHR_gaussian_splatting: the first primitive that has them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.formats.source import SCALE_LEAST, counted, malformed, unit
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

EXTENSION = "KHR_gaussian_splatting"
MAGIC = b"glTF"
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_JSON_BYTES_MAX = 1 << 22
_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}
_MOVES = ("matrix", "rotation", "scale", "translation")
_STRIDE_MAX = 252


@dataclass(frozen=True, slots=True)
class _Opened:
    """A .glb: its document, and its one buffer."""

    document: Mapping[str, Any]
    buffer: NDArray[np.uint8]

    def listed(self, name: str, number: object) -> Mapping[str, Any]:
        """An entry of one of the document's lists."""
        entries = self.document.get(name)
        if not isinstance(entries, list) or type(number) is not int or not 0 <= number < len(entries):
            raise malformed(f"it has no such entry of {name}", index=str(number)[:20])
        return _object(entries[number], name)


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise malformed(f"{what} is no object", found=type(value).__name__)
    return value


def _whole(entry: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = entry.get(name, default)
    if type(value) is not int or not 0 <= value < 2**40:
        raise malformed(f"{name} is no whole number in bounds", found=str(value)[:20])
    return value


def read(data: NDArray[np.uint8]) -> Gaussians:
    """Read a whole file.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    opened = _opened(data)
    primitive = _primitive(opened)
    attributes = _object(primitive.get("attributes"), "attributes")
    positions = _values(opened, attributes, "POSITION", 3)
    count = counted(len(positions))
    rotations = _values(opened, attributes, f"{EXTENSION}:ROTATION", 4)
    scales = _values(opened, attributes, f"{EXTENSION}:SCALE", 3)
    opacities = _values(opened, attributes, f"{EXTENSION}:OPACITY", 1)
    harmonics = _harmonics(opened, attributes)
    if {len(rotations), len(scales), len(opacities), len(harmonics)} != {count}:
        raise malformed("its attributes are not equally many", count=count)
    return Gaussians(
        positions,
        np.maximum(scales, np.float32(SCALE_LEAST)),
        unit(np.roll(rotations, 1, axis=1)),
        np.ascontiguousarray(opacities[:, 0]),
        harmonics,
    )


def _opened(data: NDArray[np.uint8]) -> _Opened:
    head = data[: _HEADER.size + _CHUNK.size].tobytes()
    if len(head) < _HEADER.size + _CHUNK.size:
        raise malformed("it ends within its header", size_bytes=len(data))
    magic, version, total = _HEADER.unpack_from(head)
    size, kind = _CHUNK.unpack_from(head, _HEADER.size)
    if magic != MAGIC or version != 2 or kind != b"JSON":
        raise malformed("it is no binary glTF 2.0", version=version)
    if total > len(data) or size > min(_JSON_BYTES_MAX, len(data) - len(head)):
        raise malformed("its parts reach beyond the end", told_bytes=total, size_bytes=len(data))
    rest = data[len(head) + size :]
    return _Opened(_parsed(data[len(head) : len(head) + size].tobytes()), _binary(rest))


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        return _object(json.loads(text), "its document")
    except (ValueError, RecursionError) as error:
        raise malformed("its document is no JSON", reason=type(error).__name__) from error


def _binary(rest: NDArray[np.uint8]) -> NDArray[np.uint8]:
    head = rest[: _CHUNK.size].tobytes()
    if len(head) < _CHUNK.size:
        raise malformed("it has no binary part", size_bytes=len(rest))
    size, kind = _CHUNK.unpack(head)
    if kind != b"BIN\0" or size > len(rest) - _CHUNK.size:
        raise malformed("its binary part reaches beyond the end", told_bytes=size, size_bytes=len(rest))
    return rest[_CHUNK.size : _CHUNK.size + size]


def _primitive(opened: _Opened) -> Mapping[str, Any]:
    meshes = opened.document.get("meshes")
    for number, mesh in enumerate(meshes if isinstance(meshes, list) else []):
        for primitive in _entries(mesh, "primitives"):
            extensions = primitive.get("extensions")
            if isinstance(extensions, dict) and EXTENSION in extensions:
                _require_still(opened, number)
                return primitive
    raise malformed(f"it has no mesh with {EXTENSION}", uses=str(opened.document.get("extensionsUsed"))[:200])


def _entries(parent: object, name: str) -> list[Mapping[str, Any]]:
    entries = _object(parent, "a mesh").get(name)
    return [_object(each, name) for each in entries] if isinstance(entries, list) else []


def _require_still(opened: _Opened, mesh: int) -> None:
    """Gaussians under a node that moves them would have to be turned, harmonics included."""
    nodes = opened.document.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        entry = _object(node, "a node")
        moves = [name for name in _MOVES if name in entry]
        if moves and (entry.get("mesh") == mesh or "children" in entry):
            raise malformed("a node moves its Gaussians; write them with the movement applied", node=moves)


def _values(opened: _Opened, attributes: Mapping[str, Any], name: str, width: int) -> NDArray[np.float32]:
    if name not in attributes:
        raise malformed("an attribute is missing", attribute=name)
    accessor = opened.listed("accessors", attributes[name])
    component = _COMPONENTS.get(_whole(accessor, "componentType"))
    if component is None or _WIDTHS.get(str(accessor.get("type"))) != width or "sparse" in accessor:
        raise malformed("an attribute is of a kind that is not read", attribute=name)
    stored = _stored(opened, accessor, np.dtype(component), width)
    values = stored.astype(np.float32)
    if accessor.get("normalized") is True and stored.dtype.kind != "f":
        values = np.maximum(values / np.float32(np.iinfo(stored.dtype).max), -1)
    return np.ascontiguousarray(values)


def _stored(
    opened: _Opened, accessor: Mapping[str, Any], component: np.dtype[Any], width: int
) -> NDArray[Any]:
    view = opened.listed("bufferViews", accessor.get("bufferView"))
    if _whole(view, "buffer") != 0:
        raise malformed("its attributes lie outside the file", buffer=_whole(view, "buffer"))
    count, row = counted(_whole(accessor, "count")), component.itemsize * width
    stride = _whole(view, "byteStride", row) or row
    start, size = _whole(view, "byteOffset", 0), _whole(view, "byteLength")
    inner = _whole(accessor, "byteOffset", 0)
    need = inner + (count - 1) * stride + row
    if not row <= stride <= max(_STRIDE_MAX, row) or need > size or start + size > len(opened.buffer):
        raise malformed("an attribute reaches beyond its buffer", offset=start + inner, needs_bytes=need)
    part = opened.buffer[start + inner : start + need]
    return np.ndarray((count, width), component, part.data, 0, (stride, component.itemsize))


def _harmonics(opened: _Opened, attributes: Mapping[str, Any]) -> NDArray[np.float32]:
    names = [
        f"{EXTENSION}:SH_DEGREE_{degree}_COEF_{number}"
        for degree, total in enumerate((1, 3, 5, 7))
        for number in range(total)
    ]
    present = sum(name in attributes for name in names)
    degrees = [coefficients for coefficients in COEFFICIENTS if coefficients <= present]
    if not degrees or any(name in attributes for name in names[degrees[-1] :]):
        raise malformed("its spherical harmonics are of no whole degree", attributes=present)
    columns = [_values(opened, attributes, name, 3) for name in names[: degrees[-1]]]
    if len({len(column) for column in columns}) != 1:
        raise malformed("its attributes are not equally many", attributes=present)
    return np.stack(columns, axis=1)
