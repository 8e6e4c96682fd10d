"""A mesh from a file, whatever its name: what it is, is told by its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.mesh import accessors, glb, parsed, stl
from tempa.engines.splat.mesh.faults import unreadable

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.engines.splat.mesh.surface import Surface

SIZE_BYTES_MAX = 256 * 1024 * 1024  # of the file, as at the door
COORDINATE_MAX = 1e30  # their products must be numbers still
UP_AXES = {"glb": "y", "obj": "y", "ply": "y", "stl": "z"}  # by specification or by custom


def read(path: Path) -> tuple[Surface, str]:
    """The surface, in the file's own axes, and which format it is of: a key of `UP_AXES`.

    Raises:
        TempaError: IMPORT_FAILED, with what is wrong in its message.
    """
    size = path.stat().st_size
    if size > SIZE_BYTES_MAX:
        raise unreadable("it is too large", size_bytes=size, limit=SIZE_BYTES_MAX)
    data = path.read_bytes()
    kind = recognized(data)
    if kind is None:
        raise unreadable("it is no GLB, STL, OBJ or PLY file")
    surface = _read(data, kind)
    bad = int(np.count_nonzero(~(np.abs(surface.corners) <= COORDINATE_MAX).all(axis=(1, 2))))
    if bad:
        raise unreadable(
            "not every coordinate is finite, or one is beyond measure", triangles=bad, limit=COORDINATE_MAX
        )
    return surface, kind


def recognized(data: bytes) -> str | None:
    """The format of these bytes; None: of none that is read."""
    if data[:4] == accessors.MAGIC:
        return "glb"
    if parsed.is_ply(data):
        return "ply"
    if stl.is_binary(data) or stl.is_text(data):
        return "stl"
    return "obj" if parsed.is_obj(data) else None


def _read(data: bytes, kind: str) -> Surface:
    match kind:
        case "glb":
            return glb.read(data)
        case "stl":
            return stl.read(data)
        case _:
            return parsed.read(data, kind)
