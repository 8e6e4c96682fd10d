"""Points lie on the surface, as densely here as there, and leave no gaps."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial import cKDTree

from tempa.engines.splat.mesh.sampling import spread

TWO = np.array([[(0, 0, 0), (3, 0, 0), (0, 1, 0)], [(0, 0, 1), (1, 0, 1), (0, 1, 1)]], np.float64)  # 3 : 1


def places(corners: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    samples = spread(corners, count, seed)
    found: np.ndarray = np.einsum("nk,nkj->nj", samples.weights, corners[samples.face])
    return found


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_there_are_as_many_as_asked_for(count: int) -> None:
    assert len(spread(TWO, count, 0).face) == count


def test_all_lie_in_their_triangles() -> None:
    weights = spread(TWO, 1000, 3).weights

    assert weights.min() >= 0.0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def test_triangles_share_by_area() -> None:
    share = np.bincount(spread(TWO, 1000, 0).face)

    assert abs(share[0] - 750) <= 2  # a piece more or less where the slender one was halved


def test_many_small_triangles_share_as_evenly_as_few() -> None:
    """5,120 triangles and 1,000 points: an eighth of the sphere gets an eighth of them."""
    points = places(np.asarray(trimesh.creation.icosphere(subdivisions=4).triangles), 1000)

    octants = np.bincount((points > 0) @ (1, 2, 4), minlength=8)

    assert abs(octants - 125).max() <= 8  # independent points: 11 is one standard deviation


@pytest.mark.parametrize(("shape", "most"), [("sphere", 1.2), ("slivers", 1.45), ("fan", 1.32), ("box", 1.0)])
def test_gaps_are_smaller_than_chance_leaves_them(shape: str, most: float) -> None:
    """From 99.9 % of all places to the nearest point, in sides of a point's share of the surface.

    Of independent points exp(-pi r^2) of all places are farther than r from any: 0.1 % at 1.48.
    """
    meshes = {
        "sphere": trimesh.creation.icosphere(subdivisions=4),
        "slivers": trimesh.creation.cylinder(radius=1.0, height=20.0, sections=64),
        "fan": trimesh.creation.cylinder(radius=5.0, height=0.2, sections=256),
        "box": trimesh.creation.box((1, 2, 3)),
    }
    mesh, n = meshes[shape], 5000

    anywhere, _ = trimesh.sample.sample_surface(mesh, 50_000, seed=1)
    distances, _ = cKDTree(places(np.asarray(mesh.triangles), n)).query(anywhere)

    assert np.quantile(distances, 0.999) < most * np.sqrt(mesh.area / n)


def test_the_same_seed_gives_the_same_points_and_another_others() -> None:
    assert places(TWO, 500, 4).tobytes() == places(TWO, 500, 4).tobytes()
    assert places(TWO, 500, 4).tobytes() != places(TWO, 500, 5).tobytes()
