"""Five bodies whose form is known from every side, as dense clouds of Gaussians, and pictures of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import trimesh

from tempa.engines.splat.gaussians import of_colors
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.raster.render import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.raster.camera import Camera
    from tempa.engines.splat.raster.render import Image

SAMPLES = 300_000
FIELD_OF_VIEW = 20.0  # degrees: a portrait lens
DISTANCE = 2.836  # a square of side 1 at the origin fills the picture
GOLDEN = 1.32471795724474602596  # of the R2 sequence (Roberts, 2018): the root of x^3 = x + 1
TURNS = ((25.0, (0.0, 1.0, 0.0)), (20.0, (1.0, 0.0, 0.0)))  # degrees, about the vertical, then across
LIGHT = np.array((0.36, 0.48, 0.8))


def _sphere() -> Any:
    return trimesh.creation.icosphere(subdivisions=5, radius=0.42)


def _box() -> Any:
    return trimesh.creation.box(extents=(0.72, 0.54, 0.4))


def _torus() -> Any:
    return trimesh.creation.torus(major_radius=0.3, minor_radius=0.13, major_sections=128, minor_sections=64)


def _capsule() -> Any:
    body = trimesh.creation.capsule(height=0.46, radius=0.19, count=(64, 64))
    body.apply_translation(-body.bounding_box.centroid)
    _turn(body, 90.0, (1.0, 0.0, 0.0))
    _turn(body, 25.0, (0.0, 0.0, 1.0))
    return body


def _bracket() -> Any:
    """An angle iron seen from its end: 0.8 x 0.7, arms 0.2 thick, 0.3 deep."""
    outline = np.array(((0, 0), (0.8, 0), (0.8, 0.2), (0.2, 0.2), (0.2, 0.7), (0, 0.7)), np.float64)
    outline -= (0.4, 0.35)
    faces = np.array(((0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)))
    front = np.column_stack((outline, np.full(6, 0.15)))
    back = np.column_stack((outline, np.full(6, -0.15)))
    triangles = [*front[faces], *back[faces[:, ::-1]]]
    for i in range(6):
        j = (i + 1) % 6
        triangles += [(back[i], back[j], front[j]), (back[i], front[j], front[i])]
    vertices = np.array(triangles).reshape(-1, 3)
    return trimesh.Trimesh(vertices, np.arange(len(vertices)).reshape(-1, 3), process=False)


def _turn(body: Any, degrees: float, axis: tuple[float, float, float]) -> None:
    turn: Any = trimesh.transformations.rotation_matrix  # has no types
    body.apply_transform(turn(math.radians(degrees), axis))


BODIES: Mapping[str, Callable[[], Any]] = {
    "sphere": _sphere,
    "box": _box,
    "torus": _torus,
    "capsule": _capsule,
    "bracket": _bracket,
}


def body(name: str, samples: int = SAMPLES, *, turned: bool = False) -> Gaussians:
    """A body of BODIES, painted and lit, as discs that leave no gap. It lies within [-0.5, 0.5]^3.

    `turned`: not face on, but by TURNS, as a thing in a picture mostly is.
    """
    mesh = BODIES[name]()
    for degrees, axis in TURNS if turned else ():
        _turn(mesh, degrees, axis)
    triangles = np.asarray(mesh.triangles, np.float64)
    positions, normals = _sampled(triangles, samples)
    radius = 0.75 * math.sqrt(float(mesh.area) / samples)
    scales = np.tile((radius, radius, 0.1 * radius), (samples, 1))
    return of_colors(
        positions, scales, _turned_to(normals), np.full(samples, 0.99), _painted(positions, normals)
    )


def _sampled(triangles: NDArray[np.float64], samples: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Evenly by area: points (n, 3) and unit normals."""
    sides = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
    cross = np.cross(*sides)
    areas = np.linalg.norm(cross, axis=1)
    ends = np.cumsum(areas)
    number = np.arange(samples)
    which = np.searchsorted(ends, (number + 0.5) / samples * ends[-1])
    u, v = ((0.5 + number / GOLDEN) % 1.0), ((0.5 + number / GOLDEN**2) % 1.0)
    over = u + v > 1.0
    u, v = np.where(over, 1.0 - u, u), np.where(over, 1.0 - v, v)
    points = triangles[which, 0] + u[:, None] * sides[0][which] + v[:, None] * sides[1][which]
    normals = cross / np.maximum(areas, 1e-30)[:, None]
    return points, normals[which]


def _turned_to(normals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quaternions that take the z axis to the normals, by the half-way vector."""
    x, y, z = normals.T
    zero = np.zeros_like(x)
    quaternions = np.stack((1.0 + z, -y, x, zero), axis=1)
    quaternions[z < -0.999999] = (0.0, 1.0, 0.0, 0.0)
    turned: NDArray[np.float64] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
    return turned


def _painted(positions: NDArray[np.float64], normals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Soft stripes through the body in three directions, under a light from the upper right."""
    x, y, z = positions.T
    stripes = np.stack(
        (
            0.55 + 0.35 * np.sin(31.0 * x + 7.0 * z),
            0.5 + 0.35 * np.sin(27.0 * y - 11.0 * x),
            0.45 + 0.3 * np.sin(23.0 * z + 19.0 * y + 1.0),
        ),
        axis=1,
    )
    lit = 0.55 + 0.45 * np.maximum(normals @ (LIGHT / np.linalg.norm(LIGHT)), 0.0)
    painted: NDArray[np.float64] = np.clip(stripes * lit[:, None], 0.0, 1.0)
    return painted


def camera(yaw_degrees: float, size: int = 512) -> Camera:
    """One that goes around the bodies."""
    return orbit(yaw_degrees, 0.0, DISTANCE, width=size, height=size, field_of_view_degrees=FIELD_OF_VIEW)


def picture(image: Image) -> NDArray[np.uint8]:
    """A drawn picture as a file would have it: RGBA, straight alpha."""
    straight = image.rgb / np.maximum(image.alpha, 1e-6)[..., None]
    rgba = np.dstack((np.where(image.alpha[..., None] > 0.0, straight, 0.0), image.alpha))
    out: NDArray[np.uint8] = np.rint(255.0 * np.clip(rgba, 0.0, 1.0)).astype(np.uint8)
    return out


def view(gaussians: Gaussians, yaw_degrees: float, size: int = 512) -> Image:
    """From a side, over nothing."""
    return render(gaussians, camera(yaw_degrees, size))
