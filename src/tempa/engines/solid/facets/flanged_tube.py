"""The triangles of a flanged tube, laid on rays from its axis.

Why not by the kernel's mesher: it cuts every edge by itself, so chords of neighbouring edges cross
where these lie closer to each other than the tolerance, and all it can do then is to cut finer,
down to the thinnest wall: minutes, for a tube of a metre (docs/decisions/0010). Points on common
rays keep their order along each ray, and so do the chords between them: nothing crosses at any
tolerance.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from tempa.engines.solid.facets.chords import Tolerance, pieces, spaced
from tempa.engines.solid.facets.profile import circles, profile
from tempa.engines.solid.facets.rays import hole_rays
from tempa.engines.solid.facets.sheet import Node, Sheet, carry_round
from tempa.engines.solid.facets.strips import strip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.engines.solid.facets.profile import Circle, Normal
    from tempa.engines.solid.facets.rays import Ray
    from tempa.engines.solid.facets.triangulation import Triangulation
    from tempa.engines.solid.templates.tube import Tube

# A point of the half: on which ray, how far from the axis; on walls also whether on the upper end.
Place: TypeAlias = tuple[int, float]
Corner: TypeAlias = tuple[int, float, bool]

FLOAT_SPACING = 2.0**-23  # of 32-bit floats, as a share of the number they stand for

AWAY: Normal = (1.0, 0.0, 0.0)
TOWARDS: Normal = (-1.0, 0.0, 0.0)


class Facets:
    """The facets of a tube, within `linear` mm of it, with `angular` degrees at most between chords."""

    def __init__(self, tube: Tube, *, linear: float, angular: float) -> None:
        # half of the distance for each of the two ways in which a fillet is curved
        spacing = FLOAT_SPACING * tube.outer_radius
        self._tube, self._tolerance = tube, Tolerance(linear / 2.0, math.radians(angular), spacing)
        step = self._tolerance.step(tube.outer_radius)
        self._sectors = tube.hole_count or max(2, pieces(math.pi, step))
        width = math.pi / self._sectors
        even = spaced(0.0, width, step)
        self._circles = circles(tube, self._tolerance, even[1])
        self._cut = self._hole_rays() if tube.hole_count else []
        clear = spaced(self._cut[-1].azimuth, width, step)[1:] if self._cut else even
        self._azimuths = sorted({*even, *clear, *(ray.azimuth for ray in self._cut)})
        numbers = {azimuth: number for number, azimuth in enumerate(self._azimuths)}
        self._even = [numbers[azimuth] for azimuth in even]
        self._fine = [numbers[azimuth] for azimuth in (*(ray.azimuth for ray in self._cut), *clear)]

    def _hole_rays(self) -> list[Ray]:
        return hole_rays(self._tube, [circle.radius for circle in self._circles], self._tolerance)

    @property
    def count(self) -> int:
        """How many triangles, or a few more. Takes no time."""
        bands = sum(self._count_band(low, high) for low, high in pairwise(self._circles))
        walls = len(self._row(self._circles[0])) + len(self._row(self._circles[-1])) + 2 * len(self._cut)
        return 4 * self._sectors * (bands + walls)

    def _count_band(self, low: Circle, high: Circle) -> int:
        if not self._is_cut(low, high):
            return len(self._row(low)) + len(self._row(high))
        inside = len(self._cut) - bisect_right(self._cut, low.radius, key=lambda ray: ray.near)
        beyond = len(self._cut) - bisect_right(self._cut, -high.radius, key=lambda ray: -ray.far)
        return 2 * (inside + beyond + len(self._fine) - len(self._cut) + 2)

    def triangulations(self) -> Iterator[Triangulation]:
        """Both ends with their fillets, the bore, the outside, the holes' walls."""
        for sheet in self._sheets():
            yield carry_round(sheet, self._azimuths, self._sectors)

    def _sheets(self) -> Iterator[Sheet]:
        end = list(self._end())
        yield Sheet.of(end, self._lower)
        yield Sheet.of(end, self._upper).turned()
        yield self._wall(self._circles[0], TOWARDS).turned()
        yield self._wall(self._circles[-1], AWAY)
        if self._cut:
            yield self._hole([ray.near for ray in self._cut], 1.0)
            yield self._hole([ray.far for ray in self._cut], -1.0).turned()

    def _row(self, circle: Circle) -> list[int]:
        return self._fine if circle.fine else self._even

    # --- ends -------------------------------------------------------------------------------------

    def _end(self) -> Iterator[tuple[Place, Place, Place]]:
        """Seen from outside the lower end, azimuths run clockwise."""
        for low, high in pairwise(self._circles):
            if self._is_cut(low, high):
                yield from self._cut_band(low.radius, high.radius)
            else:
                inner, outer = ([(ray, each.radius) for ray in self._row(each)] for each in (low, high))
                yield from strip(inner, outer, along=lambda place: self._azimuths[place[0]])

    def _is_cut(self, low: Circle, high: Circle) -> bool:
        return bool(self._cut) and self._cut[0].near < high.radius and self._cut[0].far > low.radius

    def _cut_band(self, low: float, high: float) -> Iterator[tuple[Place, Place, Place]]:
        """Between neighbouring rays: from the inner circle to the hole, and from the hole to the outer."""
        below, above = [], []
        for number, ray in zip(self._fine, self._cut, strict=False):
            near, far = (min(max(radius, low), high) for radius in (ray.near, ray.far))
            below.append(_column(number, low, near))
            above.append(_column(number, far, high))
        side = [*below[-1], *(place for place in above[-1] if place not in below[-1])]
        clear = [side, *(_column(number, low, high) for number in self._fine[len(self._cut) :])]
        for columns in (below, above, clear):
            for left, right in pairwise(columns):
                yield from strip(right, left, along=lambda place: place[1])

    def _lower(self, place: Place) -> Node:
        ray, radius = place
        depth, (out, about, up) = profile(self._tube, radius)
        return Node(ray, radius, depth, (out, about, -up))

    def _upper(self, place: Place) -> Node:
        ray, radius = place
        depth, normal = profile(self._tube, radius)
        return Node(ray, radius, self._tube.length - depth, normal)

    # --- walls ------------------------------------------------------------------------------------

    def _wall(self, circle: Circle, normal: Normal) -> Sheet:
        row = [(ray, circle.radius) for ray in self._row(circle)]
        return Sheet.of(_between(row), lambda corner: self._on_wall(corner, normal))

    def _hole(self, radii: Sequence[float], sense: float) -> Sheet:
        """One side of the hole's wall; `sense` is 1 where the hole lies farther out than its wall."""
        row = list(zip(self._fine, radii, strict=False))
        normals = [(sense * math.cos(ray.turn), -math.sin(ray.turn), 0.0) for ray in self._cut]
        facing = dict(zip(row, normals, strict=True))
        return Sheet.of(_between(row), lambda corner: self._on_wall(corner, facing[corner[:2]]))

    def _on_wall(self, corner: Corner, normal: Normal) -> Node:
        ray, radius, upper = corner
        depth, _ = profile(self._tube, radius)
        return Node(ray, radius, self._tube.length - depth if upper else depth, normal)


def _column(ray: int, low: float, high: float) -> list[Place]:
    return [(ray, low), (ray, high)] if low < high else [(ray, low)]


def _between(row: Sequence[Place]) -> Iterator[tuple[Corner, Corner, Corner]]:
    """Upright triangles between a row and the same on the upper end, seen from outside the row."""
    for (left, near), (right, far) in pairwise(row):
        lower, upper = (((left, near, up), (right, far, up)) for up in (False, True))
        yield lower[0], lower[1], upper[1]
        yield lower[0], upper[1], upper[0]
