"""Discs lie in the surface, look the way it does, and do not stick out over its edges."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from scipy.spatial.transform import Rotation

from tempa.engines.splat.gaussians import Gaussians
from tempa.engines.splat.mesh import discs, surface
from tempa.engines.splat.mesh.creases import creases
from tempa.engines.splat.mesh.surface import Paint, Surface
from tempa.engines.splat.mesh.texture import to_linear

GREY = (0.5, 0.5, 0.5)
SQUARE = np.array([[(0, 0, 0), (1, 0, 0), (1, 1, 0)], [(0, 0, 0), (1, 1, 0), (0, 1, 0)]], np.float64)


def of(mesh: trimesh.Trimesh, paint: Paint | None = None) -> Surface:
    return surface.part(np.asarray(mesh.triangles), paint or Paint())


def covered(found: Surface, count: int = 1000, shading: str = "never") -> Gaussians:
    return discs.covered(found, count, seed=0, color=GREY, shading=shading)


def thin_axes(gaussians: Gaussians) -> np.ndarray:
    w, x, y, z = gaussians.rotations.T.astype(np.float64)
    axes: np.ndarray = Rotation.from_quat(np.stack((x, y, z, w), axis=1)).as_matrix()
    return axes[:, :, 2]


def test_the_thin_axis_is_the_normal() -> None:
    found = covered(of(trimesh.creation.icosphere(subdivisions=5)))

    outward = found.positions / np.linalg.norm(found.positions, axis=1, keepdims=True)

    assert np.einsum("nk,nk->n", thin_axes(found), outward).min() > 0.999
    assert (found.scales.argmin(axis=1) == 2).all()


@pytest.mark.parametrize("normal", [(0, 0, 1), (0, 0, -1), (0, 1, 0), (-1, 0, 0)])
def test_a_turn_takes_z_to_the_normal_and_x_to_the_way(normal: tuple[float, ...]) -> None:
    normals = np.array([normal] * 3, np.float64)
    ways = np.cross(normals, np.random.default_rng(3).normal(size=(3, 3)))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)

    w, x, y, z = discs._facing(normals, ways).T
    axes = Rotation.from_quat(np.stack((x, y, z, w), axis=1)).as_matrix()

    np.testing.assert_allclose(axes[:, :, 2], normals, atol=1e-9)
    np.testing.assert_allclose(axes[:, :, 0], ways, atol=1e-9)


def test_a_radius_is_that_of_its_share() -> None:
    found = covered(of(trimesh.creation.icosphere(subdivisions=5)))

    assert found.scales[:, 0].max() == pytest.approx(0.85 * np.sqrt(4 * np.pi / 1000), rel=2e-3)


def test_no_disc_sticks_out_over_an_edge() -> None:
    """A square's discs, at the distance at which their opacity is a quarter, lie within or nearly so."""
    found = covered(surface.part(SQUARE, Paint()), 4000)
    side = np.sqrt(1.0 / 4000)
    w, x, y, z = found.rotations.T.astype(np.float64)
    axes = Rotation.from_quat(np.stack((x, y, z, w), axis=1)).as_matrix()
    reach = 1.7 * np.sqrt(
        np.einsum("nik,nk->ni", axes[:, :2, :2] ** 2, found.scales[:, :2].astype(float) ** 2)
    )
    over = np.maximum(reach - found.positions[:, :2], reach - (1.0 - found.positions[:, :2])).max(axis=1)

    # Discs in the corners are near to two edges and narrowed at one.
    inner = (np.abs(found.positions[:, :2] - 0.5) < 0.5 - 3 * side).any(axis=1)
    assert over[inner].max() < 0.4 * side


def test_a_diagonal_of_a_flat_face_is_no_crease() -> None:
    normals = np.array([(0, 0, 1), (0, 0, 1)], np.float64)

    assert creases(SQUARE, normals).tolist() == [[True, True, False], [False, True, True]]


def test_edges_of_a_box_are_creases_and_those_of_a_sphere_are_not() -> None:
    box, sphere = trimesh.creation.box(), trimesh.creation.icosphere(subdivisions=4)

    assert creases(np.asarray(box.triangles), box.face_normals).sum() == 24
    assert not creases(np.asarray(sphere.triangles), sphere.face_normals).any()


def test_without_a_colour_the_one_asked_for_is_taken() -> None:
    found = discs.covered(surface.part(SQUARE, Paint()), 50, seed=0, color=(0.2, 0.4, 0.6), shading="never")

    np.testing.assert_allclose(found.colors, np.tile((0.2, 0.4, 0.6), (50, 1)), atol=1e-5)


def test_factor_and_corners_multiply_in_light() -> None:
    colors = np.full((2, 3, 4), (0.5, 1.0, 0.25, 1.0), np.float32)
    paint = Paint(factor=np.array((0.5, 0.5, 1.0, 1.0)), even=False)

    found = covered(surface.part(SQUARE, paint, colors=colors), 50)

    np.testing.assert_allclose(to_linear(found.colors[0]), (0.25, 0.5, 0.25), atol=1e-4)


def test_a_texture_is_seen_where_it_lies() -> None:
    texture = np.full((1, 2, 4), 255, np.uint8)
    texture[0, 0, 1:3] = 0  # red on the left, white on the right
    uvs = SQUARE[..., :2].astype(np.float32)

    found = covered(surface.part(SQUARE, Paint(texture=texture, even=False), uvs=uvs), 2000)

    left = np.abs(found.positions[:, 0] - 0.25) < 0.01
    right = np.abs(found.positions[:, 0] - 0.75) < 0.01
    assert found.colors[left, 1].max() < 0.25
    assert found.colors[right, 1].min() > 0.95


@pytest.mark.parametrize(
    ("opaque_from", "opacity", "expected"), [(None, 0.5, 0.495), (0.5, 0.6, 0.99), (0.0, 0.1, 0.99)]
)
def test_opacity_is_blended_cut_or_ignored(
    opaque_from: float | None, opacity: float, expected: float
) -> None:
    paint = Paint(factor=np.array((1.0, 1.0, 1.0, opacity)), opaque_from=opaque_from)

    np.testing.assert_allclose(covered(surface.part(SQUARE, paint), 20).opacities, expected, rtol=1e-5)


def test_what_is_cut_out_is_left_out() -> None:
    paint = Paint(factor=np.array((1.0, 1.0, 1.0, 0.4)), opaque_from=0.5)

    assert len(covered(surface.part(SQUARE, paint), 20)) == 0


@pytest.mark.parametrize(
    ("shading", "even", "lit"),
    [("auto", True, True), ("auto", False, False), ("always", False, True), ("never", True, False)],
)
def test_light_falls_on_what_has_no_pattern(shading: str, even: bool, lit: bool) -> None:  # noqa: FBT001 - a table's columns
    mesh = trimesh.creation.icosphere(subdivisions=4)
    found = covered(of(mesh, Paint(factor=np.ones(4), even=even)), shading=shading)

    assert (np.ptp(found.colors[:, 0]) > 0.3) == lit


def test_light_comes_from_above() -> None:
    found = covered(of(trimesh.creation.icosphere(subdivisions=4)), shading="auto")
    top, bottom = found.positions[:, 1] > 0.8, found.positions[:, 1] < -0.8

    assert found.colors[top].mean() > found.colors[bottom].mean() + 0.2


def test_a_mesh_inside_out_is_turned() -> None:
    mesh = trimesh.creation.icosphere(subdivisions=2)
    mesh.invert()

    found = surface.outward(of(mesh))

    assert np.einsum("fk,fk->f", found.crosses, found.corners.mean(axis=1)).min() > 0.0


def test_z_up_becomes_y_up() -> None:
    found = surface.upright(surface.part(SQUARE + np.array((0, 0, 5)), Paint()), "z")

    assert found.corners[0].tolist() == [[0, 5, 0], [1, 5, 0], [1, 5, -1]]


def test_fitting_tells_how_it_was_done() -> None:
    corners = SQUARE * (2, 4, 1) + (10, 20, 30)

    fitted, scale, offset = surface.fitted(surface.part(corners, Paint()))

    assert (scale, offset.tolist()) == (0.25, [11.0, 22.0, 30.0])
    np.testing.assert_allclose(fitted.corners, scale * (corners - offset))
    assert np.abs(fitted.corners).max() == 0.5
