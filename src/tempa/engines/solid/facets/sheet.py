"""A smooth part of the surface within half a sector, and how it is carried all the way round.

A tube with n holes is made of 2 n halves, between the rays through the holes' centres and the rays
midway between them, every other one a mirror image.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from tempa.engines.solid.facets.triangulation import Triangulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tempa.engines.solid.facets.profile import Normal

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Node:
    """A point of a half: on which ray, how far from the axis and how high, in mm, and its normal."""

    ray: int
    radius: float
    height: float
    normal: Normal


@dataclass(frozen=True, slots=True)
class Sheet:
    """Nodes, and three of them for each triangle, counter-clockwise seen from outside."""

    nodes: list[Node]
    corners: list[int]

    @classmethod
    def of(cls, triangles: Iterable[tuple[Key, Key, Key]], node: Callable[[Key], Node]) -> Sheet:
        """Triangles between keys; `node` tells what a key stands for."""
        numbers: dict[Key, int] = {}
        corners = [numbers.setdefault(key, len(numbers)) for triangle in triangles for key in triangle]
        return cls([node(key) for key in numbers], corners)

    def turned(self) -> Sheet:
        """The same triangles, seen from the other side."""
        return Sheet(self.nodes, _turned(self.corners))


def carry_round(sheet: Sheet, azimuths: Sequence[float], sectors: int) -> Triangulation:
    """The sheet in all halves. The first ray is a hole's, the last is midway between two."""
    made = Triangulation(array("d"), array("f"), array("I"))
    turned = _turned(sheet.corners)
    shared: dict[tuple[int, int], int] = {}
    for half in range(2 * sectors):
        mirrored = half % 2 == 1
        rays = _place(azimuths, half // 2, sectors, mirrored=mirrored)
        ids = _lay(sheet, rays, made, shared, mirrored=mirrored)
        made.triangles.extend([ids[corner] for corner in (turned if mirrored else sheet.corners)])
    return made


@dataclass(frozen=True, slots=True)
class _Place:
    """A ray in space. `border` numbers those that two halves share, and is -1 on all others."""

    cosine: float
    sine: float
    border: int


def _place(azimuths: Sequence[float], sector: int, sectors: int, *, mirrored: bool) -> list[_Place]:
    """Borders are multiples of half a sector's angle, computed alike for both halves that meet there."""
    first, last = 2 * sector, (2 * sector + (-1 if mirrored else 1)) % (2 * sectors)
    centre = first * math.pi / sectors
    sense = -1.0 if mirrored else 1.0
    angles = [centre + sense * azimuth for azimuth in azimuths]
    angles[-1] = last * math.pi / sectors
    borders = [first, *(-1 for _ in angles[1:-1]), last]
    return [_Place(math.cos(a), math.sin(a), b) for a, b in zip(angles, borders, strict=True)]


def _lay(
    sheet: Sheet,
    rays: Sequence[_Place],
    made: Triangulation,
    shared: dict[tuple[int, int], int],
    *,
    mirrored: bool,
) -> list[int]:
    """Lay the nodes of one half; their numbers in the whole."""
    ids = []
    sense = -1.0 if mirrored else 1.0
    count = len(made.points) // 3
    for number, node in enumerate(sheet.nodes):
        ray = rays[node.ray]
        known = shared.get((ray.border, number)) if ray.border >= 0 else None
        if known is not None:
            ids.append(known)
            continue
        if ray.border >= 0:
            shared[ray.border, number] = count
        ids.append(count)
        count += 1
        out, about, up = node.normal
        about *= sense
        made.points.extend((node.radius * ray.cosine, node.radius * ray.sine, node.height))
        made.normals.extend((out * ray.cosine - about * ray.sine, out * ray.sine + about * ray.cosine, up))
    return ids


def _turned(corners: Sequence[int]) -> list[int]:
    triples = zip(corners[0::3], corners[1::3], corners[2::3], strict=True)
    return [corner for a, b, c in triples for corner in (a, c, b)]
