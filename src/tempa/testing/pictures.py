"""A picture to try the image engines on: drawn here, so that no file and no licence is needed."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float64]

_FINER = 3  # rays a pixel, along each side
_LIGHT = (-0.45, 0.75, 0.55)
_CAP, _STEM, _SPOT = (0.80, 0.10, 0.07), (0.94, 0.89, 0.78), (0.97, 0.95, 0.90)
_SPOTS = ((0.0, 90.0, 0.16), (20.0, 52.0, 0.12), (-38.0, 58.0, 0.11), (75.0, 50.0, 0.12), (-85.0, 45.0, 0.13),
          (-8.0, 25.0, 0.12), (48.0, 22.0, 0.10), (-55.0, 20.0, 0.10), (98.0, 16.0, 0.09))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Ellipsoid:
    center: tuple[float, float, float]
    radii: tuple[float, float, float]
    color: tuple[float, float, float]
    above: float = -9.0  # only what is higher than this


def toadstool(side: int = 512) -> bytes:
    """A PNG of `side` x `side` pixels with a transparent background: the same bytes with the same Pillow."""
    import numpy as np
    from PIL import Image

    fine = side * _FINER
    line = (np.arange(fine) + 0.5) / fine * 2.0 - 1.0
    x, y = np.broadcast_arrays(line[None, :], -line[:, None])
    color, depth = np.zeros((fine, fine, 3)), np.full((fine, fine), -np.inf)
    for body in _bodies():
        _draw(body, x, y, color, depth)
    seen = np.isfinite(depth)
    rgba = np.dstack([np.where(seen[..., None], color, 0.0), seen])
    small = rgba.reshape(side, _FINER, side, _FINER, 4).mean(axis=(1, 3))
    alpha = small[..., 3:]
    straight = np.divide(small[..., :3], alpha, out=np.zeros_like(small[..., :3]), where=alpha > 0)
    pixels = np.rint(np.dstack([straight, alpha]) * 255.0).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def _bodies() -> list[_Ellipsoid]:
    cap = _Ellipsoid((0.0, 0.12, 0.0), (0.78, 0.66, 0.78), _CAP, above=0.1)
    under = _Ellipsoid((0.0, 0.12, 0.0), (0.78, 0.10, 0.78), (0.86, 0.78, 0.66))
    stem = _Ellipsoid((0.0, -0.42, 0.0), (0.25, 0.62, 0.25), _STEM, above=-0.86)
    foot = _Ellipsoid((0.0, -0.76, 0.0), (0.34, 0.16, 0.34), _STEM, above=-0.9)
    return [under, stem, foot, cap, *(_on(cap, *spot) for spot in _SPOTS)]


def _on(cap: _Ellipsoid, azimuth: float, elevation: float, size: float) -> _Ellipsoid:
    """A spot on the cap; angles in degrees, from the viewer and from the brim."""
    import math

    turn, rise = math.radians(azimuth), math.radians(elevation)
    towards = (math.sin(turn) * math.cos(rise), math.sin(rise), math.cos(turn) * math.cos(rise))
    center = tuple(c + 0.93 * r * t for c, r, t in zip(cap.center, cap.radii, towards, strict=True))
    return _Ellipsoid((center[0], center[1], center[2]), (size, size * 0.8, size), _SPOT, above=0.14)


def _draw(body: _Ellipsoid, x: Vectors, y: Vectors, color: Vectors, depth: Vectors) -> None:
    """Parallel rays along -z: the nearest point of the body, lit from above on the left."""
    import numpy as np

    (cx, cy, cz), (rx, ry, rz) = body.center, body.radii
    left = 1.0 - ((x - cx) / rx) ** 2 - ((y - cy) / ry) ** 2
    z = cz + rz * np.sqrt(np.maximum(left, 0.0))
    hit = (left > 0.0) & (y > body.above) & (z > depth)
    normal = np.dstack([(x - cx) / rx**2, (y - cy) / ry**2, (z - cz) / rz**2])
    normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-9)
    light = np.array(_LIGHT) / np.linalg.norm(_LIGHT)
    lit = np.maximum(normal @ light, 0.0)
    shine = np.maximum(normal @ _halfway(light), 0.0) ** 40
    shaded = np.array(body.color) * (0.34 + 0.66 * lit[..., None]) + 0.28 * shine[..., None]
    color[hit] = np.minimum(shaded[hit], 1.0)
    depth[hit] = z[hit]


def _halfway(light: Vectors) -> Vectors:
    """Between the light and the viewer: where a smooth surface shines."""
    import numpy as np

    halfway: Vectors = light + np.array((0.0, 0.0, 1.0))
    return halfway / np.linalg.norm(halfway)
