"""The mesh that STL, GLB and 3MF files hold: 32-bit coordinates, in millimetres."""

from __future__ import annotations

import math
import sys
from array import array
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tempa.engines.solid.facets.triangulation import Triangulation

Vector: TypeAlias = tuple[float, float, float]

assert sys.byteorder == "little", "files are written as arrays lie in memory; the kernel has no other hosts"


@dataclass(frozen=True)
class Mesh:
    """Triangles, counter-clockwise seen from outside, told twice.

    For shading: `points` and unit `normals` (x, y, z each), once for every face that has the
    point, and `triangles`, three points each. For the shape: `vertices`, each place once, and
    `corners`, three vertices each, for the same triangles in the same order.
    """

    points: array[float]
    normals: array[float]
    triangles: array[int]
    vertices: array[float]
    corners: array[int]

    @property
    def triangle_count(self) -> int:
        """How many triangles."""
        return len(self.corners) // 3

    @cached_property
    def watertight(self) -> bool:
        """Is every edge shared by exactly two triangles that run it in opposite directions?"""
        count = len(self.vertices) // 3
        a, b, c = (self.corners[first::3] for first in range(3))
        sides = [zip(a, b, strict=True), zip(b, c, strict=True), zip(c, a, strict=True)]
        runs = [start * count + end for start, end in chain(*sides)]
        there = set(runs)
        return len(there) == len(runs) > 0 and there == {run % count * count + run // count for run in runs}

    @cached_property
    def volume(self) -> float:
        """Volume inside the triangles, in mm3."""
        return math.fsum(_sixfold_volume(*corners) for corners in self.facets()) / 6.0

    def facets(self) -> Iterator[tuple[Vector, Vector, Vector]]:
        """The corners of each triangle."""
        places = list(triples(self.vertices))
        at = iter(map(places.__getitem__, self.corners))
        return zip(at, at, at, strict=True)


def triples(values: Iterable[float]) -> Iterator[Vector]:
    """Values three by three."""
    each = iter(values)
    return zip(each, each, each, strict=True)


def _sixfold_volume(a: Vector, b: Vector, c: Vector) -> float:
    return (
        a[0] * (b[1] * c[2] - b[2] * c[1])
        + a[1] * (b[2] * c[0] - b[0] * c[2])
        + a[2] * (b[0] * c[1] - b[1] * c[0])
    )


def weld(faces: Iterable[Triangulation]) -> Mesh:
    """Join the triangulations of a solid's faces where their points are the same.

    Neighbours share the points of their common edge bit by bit, so nothing is rounded to find
    them. Points are compared as they will stand in the files: what falls together in 32 bits is
    one vertex, and a triangle that thereby loses an edge is left out.
    """
    points, normals, triangles = array("f"), array("f"), array("I")
    for face in faces:
        offset = len(points) // 3
        points.extend(array("f", face.points))
        normals.extend(face.normals)
        triangles.extend([point + offset for point in face.triangles])
    numbers: dict[Vector, int] = {}
    vertex = [numbers.setdefault(place, len(numbers)) for place in triples(points)]
    kept = _kept(triangles, vertex)
    corners = array("I", map(vertex.__getitem__, kept))
    return Mesh(points, normals, kept, array("f", chain.from_iterable(numbers)), corners)


def _kept(triangles: array[int], vertex: list[int]) -> array[int]:
    each = iter(triangles)
    return array(
        "I",
        [
            point
            for corners in zip(each, each, each, strict=True)
            if len({vertex[corner] for corner in corners}) == 3
            for point in corners
        ],
    )
