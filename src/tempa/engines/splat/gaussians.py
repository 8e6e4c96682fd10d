"""A cloud of 3D Gaussians, as every engine, reader, writer and renderer of this family has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

SH_C0 = 0.28209479177387814  # sqrt(1 / (4 pi)): colour = 0.5 + SH_C0 * the coefficient of degree 0
COEFFICIENTS = (1, 4, 9, 16)  # of spherical harmonics up to degree 0, 1, 2, 3
ARRAYS = ("positions", "scales", "rotations", "opacities", "harmonics")


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians:
    """`n` Gaussians in the family's one frame: x right, y up, z towards the viewer (right-handed).

    That is glTF's frame. A file's own axes, logarithms, logits and byte scales are its reader's and its
    writer's business (`formats`), and stay there. All arrays are float32 and C-contiguous.

    - `positions` (n, 3): centres. What an engine makes fits into the cube [-0.5, 0.5]^3.
    - `scales` (n, 3): standard deviations along the own axes, linear, > 0.
    - `rotations` (n, 4): unit quaternions w, x, y, z; from own axes to the frame.
    - `opacities` (n,): 0 to 1.
    - `harmonics` (n, k, 3): real spherical harmonics of the colour in sRGB, k = 1, 4, 9 or 16, in the order
      and with the signs of the 3DGS paper's reference; `[:, 0]` is degree 0.
    """

    positions: NDArray[np.float32]
    scales: NDArray[np.float32]
    rotations: NDArray[np.float32]
    opacities: NDArray[np.float32]
    harmonics: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Shapes are ours to get right: a slip here would be a silently wrong file."""
        n = len(self.positions)
        shapes = {
            "positions": (n, 3),
            "scales": (n, 3),
            "rotations": (n, 4),
            "opacities": (n,),
            "harmonics": (n, *self.harmonics.shape[1:2], 3),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            assert array.shape == shape, f"{name}: {array.shape}, not {shape}"
            assert array.dtype == np.float32, f"{name}: {array.dtype}"
            assert array.flags.c_contiguous, f"{name} is not contiguous"
        assert self.harmonics.shape[1] in COEFFICIENTS, f"{self.harmonics.shape[1]} coefficients"

    def __len__(self) -> int:
        """How many there are."""
        return len(self.positions)

    @property
    def degree(self) -> int:
        """Of the spherical harmonics: 0 to 3."""
        return COEFFICIENTS.index(self.harmonics.shape[1])

    @property
    def colors(self) -> NDArray[np.float32]:
        """Colours by degree 0 alone: sRGB, (n, 3), nominally 0 to 1 and not clipped."""
        base: NDArray[np.float32] = np.float32(0.5) + np.float32(SH_C0) * self.harmonics[:, 0]
        return base

    def take(self, which: NDArray[Any]) -> Gaussians:
        """Those of a mask or of a list of indices, in its order."""
        return Gaussians(*(np.ascontiguousarray(getattr(self, name)[which]) for name in ARRAYS))


def of_colors(
    positions: NDArray[Any],
    scales: NDArray[Any],
    rotations: NDArray[Any],
    opacities: NDArray[Any],
    colors: NDArray[Any],
) -> Gaussians:
    """Gaussians of one colour each (sRGB, 0 to 1); arrays of any float type."""
    harmonics = (np.asarray(colors, np.float64) - 0.5) / SH_C0
    return Gaussians(
        np.ascontiguousarray(positions, np.float32),
        np.ascontiguousarray(scales, np.float32),
        np.ascontiguousarray(rotations, np.float32),
        np.ascontiguousarray(opacities, np.float32),
        np.ascontiguousarray(harmonics[:, None, :], np.float32),
    )


def joined(parts: Sequence[Gaussians]) -> Gaussians:
    """All of several clouds of the same degree, one behind the other."""
    return Gaussians(*(np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS))
