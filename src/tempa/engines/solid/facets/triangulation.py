"""The triangles of one smooth part of a surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array


@dataclass(frozen=True, slots=True)
class Triangulation:
    """Points and unit normals as x, y, z, and three points (from 0) for each triangle.

    Seen from outside the solid, triangles run counter-clockwise and normals point at the viewer.
    """

    points: array[float]
    normals: array[float]
    triangles: array[int]
