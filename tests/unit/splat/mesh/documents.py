"""GLB files made by hand, honest and otherwise."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

TRIANGLE = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0)], "<f4")


def glb(tree: dict[str, Any], binary: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    binary += bytes(-len(binary) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text
    if binary:
        chunks += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def document(positions: np.ndarray = TRIANGLE, **changes: Any) -> tuple[dict[str, Any], bytes]:
    """One mesh of one primitive, not indexed, in one node."""
    data = positions.astype("<f4").tobytes()
    tree = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": len(positions)}],
        "bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": len(data)}],
        "buffers": [{"byteLength": len(data)}],
    }
    return tree | changes, data
