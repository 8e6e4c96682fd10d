"""Gaussians on a surface: flat discs that lie in its triangles and overlap just enough to close it."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.gaussians import of_colors
from tempa.engines.splat.mesh.creases import creases, nearest
from tempa.engines.splat.mesh.sampling import spread
from tempa.engines.splat.mesh.texture import look_up, reduced, to_linear, to_srgb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.mesh.sampling import Samples
    from tempa.engines.splat.mesh.surface import Paint, Surface

# Standard deviation, in sides of the square that is a disc's share of the surface. One layer of a sphere's
# surface then hides 97 % of what is behind it where it hides least; with 0.75 it is 92 %, and specks show.
RADIUS = 0.85
THICKNESS = 0.1  # of a disc, in radii
OPACITY = 0.99
REACH = 1.7  # radii: how far a disc may stick out over a crease, where its opacity is down to 0.23
_NARROWEST = 0.25  # in radii
_FAINT = 1.0 / 255.0
# Light for what is of one colour all over, by the normal: from above the viewer's left shoulder, over
# light from the sky that is stronger than that from the ground. Linear; white stays below 1.
_KEY = np.array((-0.45, 0.65, 0.6)) / math.sqrt(0.45**2 + 0.65**2 + 0.6**2)
_KEY_LIGHT, _SKY, _GROUND = 0.62, 0.34, 0.12


def covered(surface: Surface, count: int, *, seed: int, color: Sequence[float], shading: str) -> Gaussians:
    """Cover a surface (with an area above 0) with `count` discs.

    Where the surface is transparent, discs are too; those that would not show are left out.

    Args:
        surface: In the family's frame.
        count: Of discs on all of it.
        seed: Shifts where they lie.
        color: sRGB, for what has no colour.
        shading: "auto": what is of one colour all over is lit; "always"; "never".
    """
    samples = spread(surface.corners, count, seed)
    crosses = surface.crosses
    lengths = np.linalg.norm(crosses, axis=1)
    normals = crosses / lengths[:, None]
    radius = RADIUS * math.sqrt(float(lengths.sum()) / 2.0 / count)
    scales, rotations = _shapes(surface.corners, normals, samples, radius)
    colors = _colors(surface, samples, normals[samples.face], color, shading)
    positions = np.einsum("nk,nkj->nj", samples.weights, surface.corners[samples.face])
    seen = np.flatnonzero(colors[:, 3] >= _FAINT)
    return of_colors(
        positions[seen],
        scales[seen],
        rotations[seen],
        OPACITY * colors[seen, 3],
        to_srgb(colors[seen, :3]),
    )


def _shapes(
    corners: NDArray[np.float64], normals: NDArray[np.float64], samples: Samples, radius: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scales (n, 3) and rotations (n, 4): along the nearest crease, across it, and thin along the normal.

    Where triangles are smaller than discs, narrowing those that touch a crease would change nothing.
    """
    fine = len(corners) > len(samples.face)
    creased = np.zeros((len(corners), 3), bool) if fine else creases(corners, normals)
    distances, ways = nearest(corners, creased, samples)
    across = np.clip(distances / REACH, _NARROWEST * radius, radius)
    along, thin = np.full_like(across, radius), np.full_like(across, THICKNESS * radius)
    return np.stack((along, across, thin), axis=1), _facing(normals[samples.face], ways)


def _facing(normals: NDArray[np.float64], ways: NDArray[np.float64]) -> NDArray[np.float64]:
    """The turns (n, 4) that take z to the normals and x to the ways, which lie at right angles to them.

    A turn about z comes first, then the shortest one that takes z to the normal.
    """
    x, y, z = normals.T
    back = 1.0 + z < 1e-12  # straight back: half a turn, about x
    over = np.where(back, 1.0, 1.0 + z)
    first = np.stack((1.0 - x * x / over, -x * y / over, -x), axis=1)
    first[back] = (1.0, 0.0, 0.0)
    second = np.cross(normals, first)
    half = np.arctan2(np.einsum("nk,nk->n", ways, second), np.einsum("nk,nk->n", ways, first)) / 2.0
    length = np.sqrt(2.0 * over)
    w, i, j = over / length, -y / length, x / length
    w[back], i[back], j[back] = 0.0, 1.0, 0.0
    c, s = np.cos(half), np.sin(half)
    return np.stack((w * c, i * c + j * s, j * c - i * s, w * s), axis=1)


def _colors(
    surface: Surface,
    samples: Samples,
    normals: NDArray[np.float64],
    color: Sequence[float],
    shading: str,
) -> NDArray[np.float64]:
    """Linear RGB and opacity (n, 4)."""
    corners = surface.colors[samples.face].astype(np.float64)
    colors: NDArray[np.float64] = np.einsum("nk,nkj->nj", samples.weights, corners)
    plain = np.append(to_linear(np.asarray(color, np.float64)), 1.0)
    groups = _by_paint(surface.paint[samples.face], len(surface.paints))
    textures = _textures(surface.paints, groups)
    for paint, which in zip(surface.paints, groups, strict=True):
        if paint.factor is not None:
            colors[which] *= paint.factor
        elif paint.even:
            colors[which] *= plain
        if paint.texture is not None:
            colors[which] *= look_up(textures[id(paint.texture)], _uvs(surface, samples, which))
        colors[which, 3] = _opacity(colors[which, 3], paint.opaque_from)
        if shading == "always" or (shading == "auto" and paint.even):
            colors[which, :3] *= _light(normals[which])[:, None]
    return colors


def _by_paint(paint: NDArray[np.int32], count: int) -> Sequence[NDArray[np.intp]]:
    """The samples of each paint, in one pass however many paints there are."""
    order = np.argsort(paint, kind="stable")
    return np.split(order, np.searchsorted(paint[order], np.arange(1, count)))


def _textures(paints: Sequence[Paint], groups: Sequence[NDArray[np.intp]]) -> Mapping[int, NDArray[np.uint8]]:
    """Each texture, by identity, reduced once for all samples that are taken of it."""
    counts: Counter[int] = Counter()
    for paint, which in zip(paints, groups, strict=True):
        counts[id(paint.texture)] += len(which)
    textures = {id(paint.texture): paint.texture for paint in paints if paint.texture is not None}
    return {key: reduced(texture, counts[key]) for key, texture in textures.items()}


def _uvs(surface: Surface, samples: Samples, which: NDArray[np.intp]) -> NDArray[np.float32]:
    uvs = np.einsum("nk,nkj->nj", samples.weights[which], surface.uvs[samples.face[which]])
    narrow: NDArray[np.float32] = uvs.astype(np.float32)
    return narrow


def _opacity(values: NDArray[np.float64], opaque_from: float | None) -> NDArray[np.float64]:
    return values if opaque_from is None else (values >= opaque_from).astype(np.float64)


def _light(normals: NDArray[np.float64]) -> NDArray[np.float64]:
    """How bright a white surface is, by its normals."""
    sky = (1.0 + normals[:, 1]) / 2.0
    key: NDArray[np.float64] = np.maximum(normals @ _KEY, 0.0)
    return _GROUND + (_SKY - _GROUND) * sky + _KEY_LIGHT * key
