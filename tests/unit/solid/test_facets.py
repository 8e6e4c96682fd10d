"""The facets of a tube, held against the exact surface: by other formulas than those that lay them."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tempa.engines.solid.exports.mesh import weld
from tempa.engines.solid.facets.flanged_tube import Facets
from tempa.engines.solid.facets.strips import strip
from tempa.engines.solid.facets.triangulation import Triangulation
from tempa.engines.solid.templates.tube import Tube

EXAMPLE = Tube(60.25, 22.5, 300.0, 2.5, 6, 40.0, 5.0)
Array = npt.NDArray[np.float64]

# Radii of tubes that the kernel's mesher ran minutes on, or could not mesh: walls, gaps and fillets
# far thinner than the tolerance, on radii up to ten metres.
HARD = {
    "holes that touch the flat from outside": Tube(550.0, 50.0, 1200.0, 499.999, 2, 125.0, 74.999),
    "many holes as wide as the wall": Tube(
        343.73699110086775, 342.76317184439085, 557.65, 0.97281, 64, 343.25008, 0.485905
    ),
    "a wall of 1e-3 on ten metres": Tube(10000.0, 9999.999, 100.0),
    "a wall of 0.012 with holes on the fillet": Tube(
        212.0607227797924, 212.04824399242858, 1163.76, 0.011478787, 9, 212.0544833861105, 0.00523939
    ),
    "a fillet to within 1e-3 of the bore": replace(EXAMPLE, fillet_radius=37.749),
    "holes that touch the flat from inside": replace(EXAMPLE, fillet_radius=15.25),
    "holes within 1e-12 of touching it": replace(EXAMPLE, fillet_radius=15.25 + 1e-12),
    "many holes across the end of the flat": Tube(150.0, 50.0, 50.0, 20.0, 200, 130.0, 0.25),
    "holes 1e-3 from bore and rim": Tube(60.25, 22.5, 300.0, 0.0, 3, 41.375, 18.874),
}


def distance(tube: Tube, points: Array) -> Array:
    """How far points lie from the nearest of the tube's surfaces."""
    x, y = points[:, 0], points[:, 1]
    rho, z = np.hypot(x, y), np.minimum(points[:, 2], tube.length - points[:, 2])
    near = [np.abs(z), np.abs(rho - tube.outer_radius), np.abs(rho - tube.inner_radius)]
    if tube.fillet_radius:
        f, tube_of_torus = tube.fillet_radius, np.hypot(rho - tube.flat_radius, z - tube.fillet_radius)
        on_fillet = (rho > tube.flat_radius - 1e-9) & (z < f + 1e-9)
        near.append(np.where(on_fillet, np.abs(tube_of_torus - f), np.inf))
    if tube.hole_count:
        pitch_angle = 2.0 * math.pi / tube.hole_count
        centre = np.round(np.arctan2(y, x) / pitch_angle) * pitch_angle
        p = tube.pitch_radius
        apart = np.hypot(x - p * np.cos(centre), y - p * np.sin(centre))
        near.append(np.abs(apart - tube.hole_radius))
    lowest: Array = np.min(near, axis=0)
    return lowest


def corners(sheet: Triangulation) -> tuple[Array, Array]:
    """Points and normals of each triangle's corners: (triangles, 3, 3) both."""
    at = np.reshape(sheet.triangles, (-1, 3))
    return np.reshape(sheet.points, (-1, 3))[at], np.reshape(sheet.normals, (-1, 3))[at].astype(float)


def check(tube: Tube, linear: float, angular: float) -> None:
    """Closed, of the part's volume, within the tolerance everywhere, and nowhere folded over."""
    facets = Facets(tube, linear=linear, angular=angular)
    sheets = list(facets.triangulations())
    made = sum(len(sheet.triangles) // 3 for sheet in sheets)
    assert made <= facets.count <= 2.5 * made
    slack = linear + 2.0**-23 * max(tube.outer_radius, tube.length)
    for sheet in sheets:
        at, normals = corners(sheet)
        for weights in ((1, 1, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)):
            inside = np.average(at, axis=1, weights=weights)
            assert distance(tube, inside).max() <= slack
        across = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
        sizes = np.linalg.norm(across, axis=1)
        told = sizes > 1e-9 * sizes.max()
        facing = np.einsum("ij,ij->i", across, normals.sum(axis=1))
        assert (facing[told] / sizes[told]).min() > 0.0
    mesh = weld(sheets)
    assert open_edges(np.reshape(mesh.corners, (-1, 3))) == 0
    assert abs(mesh.volume - tube.reference.volume) <= slack * tube.reference.area


def open_edges(triangles: npt.NDArray[np.uint32]) -> int:
    """Edges that are not run once each way."""
    runs = Counter((int(row[i]), int(row[(i + 1) % 3])) for row in triangles for i in range(3))
    return sum(1 for (start, end), times in runs.items() if times != 1 or runs[end, start] != 1)


@pytest.mark.parametrize(("linear", "angular"), [(0.1, 20.0), (1000.0, 90.0)])
@pytest.mark.parametrize("tube", HARD.values(), ids=HARD)
def test_thin_walls_and_close_edges_are_meshed_at_any_tolerance(
    tube: Tube, linear: float, angular: float
) -> None:
    check(tube, linear, angular)


def test_a_hole_that_reaches_just_beyond_a_circle_does_not_tear() -> None:
    """By 4e-5 mm, less than 32-bit numbers lie apart there: its tip is put on the circle, and all else stays
    behind it."""
    tube = Tube(
        1484.6660372156782 / 2, 1484.6239442006975 / 2, 2403.732850056157, 0.005932517583736361,
        15, 1484.6414142963558 / 2, 0.013869798881232373 / 2,
    )  # fmt: skip
    check(tube, 0.010308683817483474, 5.0)


def test_random_tubes_are_meshed_within_their_tolerance() -> None:
    rng = random.Random(2026)
    for _ in range(60):
        inner = 10 ** rng.uniform(-1, 2.5)
        wall = 10 ** rng.uniform(-2, 2)
        length = 10 ** rng.uniform(0, 3)
        fillet = rng.choice([0.0, rng.uniform(0.1, 1.0) * (min(wall, length / 2) - 1e-3)])
        hole = rng.uniform(0.1, 0.999) * (wall / 2 - 1e-3)
        pitch = rng.uniform(inner + hole + 1e-3, inner + wall - hole - 1e-3)
        most = math.floor(math.pi / math.asin((hole + 5e-4) / pitch))
        count = rng.randint(1, min(most, 12))
        tube = Tube(inner + wall, inner, length, fillet, count, pitch, hole)
        check(tube, 10 ** rng.uniform(-1, 0.5), rng.choice([5.0, 20.0, 90.0]))


def test_a_tube_without_holes_is_a_polygon_turned_round() -> None:
    """Volume by the shoelace: rings of a regular polygon, of as many corners as lie on the rim."""
    tube = Tube(10.0, 4.0, 20.0)
    mesh = weld(Facets(tube, linear=0.1, angular=20.0).triangulations())
    rim = {v for v in zip(*[iter(mesh.vertices)] * 3, strict=True) if math.hypot(v[0], v[1]) > 9.0}
    n = len(rim) // 2
    assert n >= math.pi / math.acos(1.0 - 0.1 / 10.0)
    polygon = n / 2.0 * math.sin(2.0 * math.pi / n)
    assert mesh.volume == pytest.approx(polygon * (100.0 - 16.0) * 20.0, rel=1e-6)


def test_the_count_is_known_before_anything_is_laid() -> None:
    """Of 1e10 triangles: laying them would not end."""
    assert Facets(Tube(5e5, 2e5, 1e6, 2.5e5), linear=1e-3, angular=1.0).count > 1e9


def test_a_finer_tolerance_takes_more_facets() -> None:
    counts = [Facets(EXAMPLE, linear=10.0**-k, angular=20.0).count for k in range(4)]
    assert counts == sorted(counts)
    assert counts[-1] > 10 * counts[0]


def test_a_strip_joins_rows_of_different_points() -> None:
    """All of the area between, each triangle counter-clockwise."""
    right = [(1.0, y) for y in (0.0, 0.1, 0.5, 1.0)]
    left = [(0.0, y) for y in (0.0, 0.9, 1.0)]
    areas = [
        ((b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])) / 2.0
        for a, b, c in strip(right, left, along=lambda point: point[1])
    ]
    assert min(areas) > 0.0
    assert len(areas) == 5
    assert sum(areas) == pytest.approx(1.0)
