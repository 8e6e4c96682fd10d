"""The numbers in a binary glTF file, each looked at before it is believed.

An accessor tells how many values lie where; a hostile one tells of more than there are. Nothing here
takes memory for what the file does not hold.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.mesh.faults import unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

MAGIC = b"glTF"
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}


@dataclass(frozen=True, slots=True)
class Document:
    """A file taken apart: its JSON, and the bytes that belong to it."""

    tree: Mapping[str, Any]
    binary: memoryview

    def entry(self, kind: str, number: Any) -> Mapping[str, Any]:
        """One of a list at the root.

        Raises:
            TempaError: IMPORT_FAILED; there is no such one.
        """
        entries = self.tree.get(kind, [])
        if type(number) is not int or not 0 <= number < len(entries):
            raise unreadable("it refers to what it does not hold", kind=kind, number=str(number))
        found = entries[number]
        if not isinstance(found, dict):
            raise unreadable("an entry is no object", kind=kind, number=number)
        return found

    def view(self, number: Any) -> tuple[memoryview, int]:
        """A buffer view's bytes and its stride (0: there is none)."""
        told = self.entry("bufferViews", number)
        buffer = self.entry("buffers", told.get("buffer"))
        if told["buffer"] != 0 or "uri" in buffer:
            raise unreadable("it refers to another file, and none is opened")
        start, size, stride = (_count(told, name) for name in ("byteOffset", "byteLength", "byteStride"))
        if start + size > len(self.binary):
            raise unreadable("a buffer view reaches beyond the file", view=number)
        return self.binary[start : start + size], stride

    def values(self, number: Any, width: int | None = None) -> NDArray[Any]:
        """An accessor's values (n, width), integers as floats where they are normalized."""
        told = self.entry("accessors", number)
        found = _WIDTHS.get(str(told.get("type")))
        code = _COMPONENTS.get(told.get("componentType", 0))
        if found is None or code is None or "sparse" in told or width not in (None, found):
            raise unreadable("an accessor is of a kind that is not read", accessor=number)
        data, stride = self.view(told.get("bufferView"))
        kind = np.dtype(code)
        values = _strided(
            data, kind, found, count=_count(told, "count"), start=_count(told, "byteOffset"), stride=stride
        )
        if told.get("normalized") and kind.kind in "iu":
            return np.maximum(values / np.float32(np.iinfo(kind).max), np.float32(-1.0))
        return values


def _strided(
    data: memoryview, kind: np.dtype[Any], width: int, *, count: int, start: int, stride: int
) -> NDArray[Any]:
    size = kind.itemsize * width
    step = stride or size
    if count < 1 or step < size or start + step * (count - 1) + size > len(data):
        raise unreadable("an accessor reaches beyond its buffer view", count=count)
    return np.ndarray((count, width), kind, data, start, (step, kind.itemsize)).copy()


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name, 0)
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise unreadable("a number is none of its kind", name=name)
    return value


def opened(data: bytes) -> Document:
    """Take a .glb apart.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    try:
        magic, version, size = _HEADER.unpack_from(data)
        if (magic, version) != (MAGIC, 2) or size > len(data):
            raise unreadable("it is no whole glTF 2.0 file", version=version, size_bytes=size)
        text, end = _chunk(data, _HEADER.size, b"JSON")
        tree = json.loads(bytes(text))
        binary = _chunk(data, end, b"BIN\0")[0] if end + _CHUNK.size <= size else memoryview(b"")
    except (struct.error, ValueError, RecursionError) as error:
        raise unreadable("its chunks are broken", reason=type(error).__name__) from error
    if not isinstance(tree, dict):
        raise unreadable("its JSON is no object")
    return Document(tree, binary)


def _chunk(data: bytes, start: int, kind: bytes) -> tuple[memoryview, int]:
    size, found = _CHUNK.unpack_from(data, start)
    end = start + _CHUNK.size + size
    if found != kind or end > len(data):
        raise ValueError(kind)
    return memoryview(data)[start + _CHUNK.size : end], end
