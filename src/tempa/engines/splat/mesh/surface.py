"""A surface of triangles with its colours: what every reader of meshes gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Triangles, instances counted each. Each takes 1 KiB while it is worked on: with a million of them and as
# many Gaussians a job was measured to need 1.8 GiB.
FACES_MAX = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Paint:
    """How a part of a surface is coloured, beside the colours of its corners.

    - `factor` (4,): linear RGB and opacity that all else is multiplied by; None: the file gives no colour.
    - `texture` (height, width, 4): uint8, sRGB and opacity, row 0 at v = 0; None: there is none.
    - `even`: one colour all over, so that only light shows its form.
    - `opaque_from`: None: opacity is as it is; 0: opacity does not matter; else it is 0 below this, 1 above.
    """

    factor: NDArray[np.float64] | None = None
    texture: NDArray[np.uint8] | None = None
    even: bool = True
    opaque_from: float | None = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """`f` triangles, counter-clockwise as seen from outside.

    - `corners` (f, 3, 3): float64, in the file's own axes and unit.
    - `colors` (f, 3, 4): float32, linear RGB and opacity of the corners.
    - `uvs` (f, 3, 2): float32, places in the texture; v goes down from its top.
    - `paint` (f,): int32, number of a triangle's paint in `paints`.
    """

    corners: NDArray[np.float64]
    colors: NDArray[np.float32]
    uvs: NDArray[np.float32]
    paint: NDArray[np.int32]
    paints: Sequence[Paint]

    def __len__(self) -> int:
        """How many triangles."""
        return len(self.corners)

    @property
    def crosses(self) -> NDArray[np.float64]:
        """Normals (f, 3), as long as twice the area."""
        first, second, third = np.moveaxis(self.corners, 1, 0)
        crosses: NDArray[np.float64] = np.cross(second - first, third - first)
        return crosses

    def take(self, which: NDArray[np.intp] | NDArray[np.bool_]) -> Surface:
        """Some of the triangles."""
        return Surface(
            self.corners[which], self.colors[which], self.uvs[which], self.paint[which], self.paints
        )

    def moved_to(self, corners: NDArray[np.float64]) -> Surface:
        """The same triangles elsewhere."""
        return Surface(corners, self.colors, self.uvs, self.paint, self.paints)

    def turned_over(self) -> Surface:
        """The same triangles, seen from the other side."""
        return Surface(
            np.ascontiguousarray(self.corners[:, ::-1]),
            np.ascontiguousarray(self.colors[:, ::-1]),
            np.ascontiguousarray(self.uvs[:, ::-1]),
            self.paint,
            self.paints,
        )


def part(
    corners: NDArray[np.float64],
    paint: Paint,
    *,
    colors: NDArray[np.float32] | None = None,
    uvs: NDArray[np.float32] | None = None,
) -> Surface:
    """A surface of one paint; without colours its corners are white."""
    f = len(corners)
    return Surface(
        np.asarray(corners, np.float64),
        np.ones((f, 3, 4), np.float32) if colors is None else colors,
        np.zeros((f, 3, 2), np.float32) if uvs is None else uvs,
        np.zeros(f, np.int32),
        (paint,),
    )


def joined(parts: Sequence[Surface]) -> Surface:
    """All parts as one surface. A paint that is the same object in several is one paint of the whole."""
    paints = {id(paint): paint for each in parts for paint in each.paints}
    numbers = {key: number for number, key in enumerate(paints)}
    renumbered = [np.array([numbers[id(p)] for p in each.paints], np.int32)[each.paint] for each in parts]
    return Surface(
        np.concatenate([each.corners for each in parts]),
        np.concatenate([each.colors for each in parts]),
        np.concatenate([each.uvs for each in parts]),
        np.concatenate(renumbered),
        tuple(paints.values()),
    )


def upright(surface: Surface, up_axis: str) -> Surface:
    """In the family's frame; "z": what points along z in the file comes to point along y."""
    if up_axis == "y":
        return surface
    x, y, z = np.moveaxis(surface.corners, 2, 0)
    return surface.moved_to(np.stack((x, z, -y), axis=2))


def outward(surface: Surface) -> Surface:
    """With its triangles turned over if it encloses a volume below nought: it is inside out then."""
    middle = surface.corners.mean(axis=(0, 1))
    first, second, third = np.moveaxis(surface.corners - middle, 1, 0)
    volume = float(np.einsum("fk,fk->", first, np.cross(second, third)))
    return surface if volume >= 0.0 else surface.turned_over()


def fitted(surface: Surface) -> tuple[Surface, float, NDArray[np.float64]]:
    """In the cube [-0.5, 0.5]^3, with the scale and the offset: fitted = scale * (upright - offset)."""
    flat = surface.corners.reshape(-1, 3)
    low, high = flat.min(axis=0), flat.max(axis=0)
    offset, scale = (low + high) / 2.0, 1.0 / float((high - low).max())
    return surface.moved_to((surface.corners - offset) * scale), scale, offset
