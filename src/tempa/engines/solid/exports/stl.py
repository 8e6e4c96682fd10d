"""Binary STL: an 80-byte header, a count, and 50 bytes for each triangle."""

from __future__ import annotations

import math
import struct
from itertools import chain
from typing import TYPE_CHECKING

from tempa.engines.solid.exports.readback import different, same

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.engines.solid.exports.mesh import Mesh, Vector

# Not "solid ...": by that word readers tell the text form.
HEADER = b"binary STL in millimetres, made by Tempa".ljust(80, b"\0")
_COUNT = struct.Struct("<I")
_FACET = struct.Struct("<12fH")


def write(mesh: Mesh, path: Path) -> None:
    """Write a mesh, each triangle with its own normal."""
    facets = (_FACET.pack(*_normal(a, b, c), *a, *b, *c, 0) for a, b, c in mesh.facets())
    path.write_bytes(b"".join(chain((HEADER, _COUNT.pack(mesh.triangle_count)), facets)))


def _normal(a: Vector, b: Vector, c: Vector) -> Vector:
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = a, b, c
    ux, uy, uz, vx, vy, vz = bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    length = math.hypot(x, y, z) or 1.0
    return x / length, y / length, z / length


def verify(path: Path, mesh: Mesh) -> None:
    """Read the file again: the same triangles in the same places.

    Raises:
        TempaError: EXPORT_FAILED.
    """
    data = path.read_bytes()
    if len(data) < len(HEADER) + _COUNT.size:
        raise different(path, "size", found=len(data))
    (count,) = _COUNT.unpack_from(data, len(HEADER))
    same(path, "triangles", wrote=mesh.triangle_count, found=count)
    records = memoryview(data)[len(HEADER) + _COUNT.size :]
    same(path, "size", wrote=count * _FACET.size, found=len(records))
    found = [record[3:12] for record in _FACET.iter_unpack(records)]
    same(path, "coordinates", wrote=[a + b + c for a, b, c in mesh.facets()], found=found)
