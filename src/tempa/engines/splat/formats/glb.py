"""Binary glTF 2.0 with KHR_gaussian_splatting (ratified by Khronos): points with attributes of their own.

Scales are linear and opacities from 0 to 1, as the ratified text has it; a draft of it had logarithms.
Colours are meant for the display (`srgb_rec709_display`). `COLOR_0` lets viewers without the extension
show coloured points.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.formats.glb_reading import EXTENSION, MAGIC
from tempa.engines.splat.formats.packing import to_bytes
from tempa.engines.splat.gaussians import COEFFICIENTS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians


_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<I4s")
_FLOAT, _UNSIGNED_BYTE = 5126, 5121
_ARRAY_BUFFER = 34962
_POINTS = 0
_KINDS = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame, which is glTF's."""
    attributes = _attributes(gaussians)
    arrays = list(attributes.values())
    size = sum(array.nbytes for array in arrays)  # all rows are multiples of 4 bytes: aligned as they come
    text = json.dumps(_document(attributes, size), separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    total = _HEADER.size + 2 * _CHUNK.size + len(text) + size
    with path.open("wb") as file:
        file.write(_HEADER.pack(MAGIC, 2, total) + _CHUNK.pack(len(text), b"JSON") + text)
        file.write(_CHUNK.pack(size, b"BIN\0"))
        for array in arrays:
            file.write(array.data)


def _attributes(gaussians: Gaussians) -> dict[str, NDArray[Any]]:
    rgba = np.concatenate((gaussians.colors, gaussians.opacities[:, None]), axis=1)
    attributes: dict[str, NDArray[Any]] = {
        "POSITION": gaussians.positions,
        "COLOR_0": to_bytes(rgba),
        f"{EXTENSION}:ROTATION": np.ascontiguousarray(np.roll(gaussians.rotations, -1, axis=1)),
        f"{EXTENSION}:SCALE": gaussians.scales,
        f"{EXTENSION}:OPACITY": gaussians.opacities,
    }
    for degree, (start, stop) in enumerate(zip((0, *COEFFICIENTS), COEFFICIENTS, strict=False)):
        for number in range(start, min(stop, gaussians.harmonics.shape[1])):
            name = f"{EXTENSION}:SH_DEGREE_{degree}_COEF_{number - start}"
            attributes[name] = np.ascontiguousarray(gaussians.harmonics[:, number])
    return attributes


def _document(attributes: dict[str, NDArray[Any]], size_bytes: int) -> dict[str, Any]:
    return {
        "asset": {"version": "2.0", "generator": "Tempa"},
        "extensionsUsed": [EXTENSION],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": "model", "mesh": 0}],
        "meshes": [
            {
                "name": "model",
                "primitives": [
                    {
                        "attributes": {name: number for number, name in enumerate(attributes)},
                        "mode": _POINTS,
                        "extensions": {
                            EXTENSION: {
                                "kernel": "ellipse",
                                "colorSpace": "srgb_rec709_display",
                                "sortingMethod": "cameraDistance",
                                "projection": "perspective",
                            }
                        },
                    }
                ],
            }
        ],
        "accessors": [_accessor(number, array) for number, array in enumerate(attributes.values())],
        "bufferViews": _views(attributes),
        "buffers": [{"byteLength": size_bytes}],
    }


def _accessor(view: int, array: NDArray[Any]) -> dict[str, Any]:
    of_bytes = array.dtype == np.uint8
    accessor: dict[str, Any] = {
        "bufferView": view,
        "componentType": _UNSIGNED_BYTE if of_bytes else _FLOAT,
        "count": len(array),
        "type": _KINDS[array.size // len(array)],
    }
    if of_bytes:
        accessor["normalized"] = True
    if view == 0:  # of positions, bounds must be told
        accessor["min"] = [float(value) for value in array.min(axis=0)]
        accessor["max"] = [float(value) for value in array.max(axis=0)]
    return accessor


def _views(attributes: dict[str, NDArray[Any]]) -> list[dict[str, int]]:
    views, offset = list[dict[str, int]](), 0
    for array in attributes.values():
        views.append({"buffer": 0, "byteOffset": offset, "byteLength": array.nbytes, "target": _ARRAY_BUFFER})
        offset += array.nbytes
    return views
