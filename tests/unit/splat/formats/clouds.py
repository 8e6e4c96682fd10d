"""Clouds to write and read: random ones, and an asymmetric object that shows how it stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.formats.order import morton
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import COEFFICIENTS, SH_C0, Gaussians, joined, of_colors

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cloud(count: int, degree: int = 0, seed: int = 1) -> Gaussians:
    """Random ones, of all that an engine may make."""
    dice = np.random.default_rng(seed)
    rotations = dice.normal(size=(count, 4))
    harmonics = dice.normal(0, 0.25, (count, COEFFICIENTS[degree], 3))
    harmonics[:, 0] = (dice.uniform(0, 1, (count, 3)) - 0.5) / SH_C0
    return Gaussians(
        dice.uniform(-0.5, 0.5, (count, 3)).astype(np.float32),
        np.exp(dice.uniform(-7, -3, (count, 3))).astype(np.float32),
        (rotations / np.linalg.norm(rotations, axis=1, keepdims=True)).astype(np.float32),
        dice.uniform(0, 1, count).astype(np.float32),
        harmonics.astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of the object: where it points, its colour, how long and how thick it is."""

    direction: tuple[float, float, float]
    color: tuple[float, float, float]
    length: float
    thickness: float


ARMS = (
    Arm((1, 0, 0), (0.9, 0.1, 0.1), 0.48, 0.010),
    Arm((0, 1, 0), (0.1, 0.9, 0.1), 0.36, 0.016),
    Arm((0, 0, 1), (0.1, 0.1, 0.9), 0.24, 0.024),
)


def arms(per_arm: int = 40) -> Gaussians:
    """Red along +x, green along +y, blue along +z of the family's frame, each shorter and thicker than the
    one before; every Gaussian is long in its arm's direction.
    """
    return joined([_arm(arm, per_arm) for arm in ARMS])


def _arm(arm: Arm, count: int) -> Gaussians:
    direction = np.array(arm.direction, float)
    positions = np.linspace(0.05, arm.length, count)[:, None] * direction
    # Long along its own x; turned from x to the arm: about z for y, about -y for z.
    half = 0.5**0.5
    turn: dict[tuple[float, float, float], tuple[float, ...]] = {
        (1, 0, 0): (1, 0, 0, 0),
        (0, 1, 0): (half, 0, 0, half),
        (0, 0, 1): (half, 0, -half, 0),
    }
    scales = np.tile((3 * arm.thickness, arm.thickness, arm.thickness / 2), (count, 1))
    rotations = np.tile(turn[arm.direction], (count, 1))
    return of_colors(positions, scales, rotations, np.full(count, 0.8), np.tile(arm.color, (count, 1)))


def covariances(scales: NDArray[np.floating], rotations: NDArray[np.floating]) -> NDArray[np.float64]:
    """R S S^T R^T, by the matrix that the glTF extension's text prints."""
    w, x, y, z = np.asarray(rotations, float).T
    frame = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    squares = np.asarray(scales, float) ** 2
    return np.asarray(frame @ (squares[:, :, None] * frame.transpose(0, 2, 1)))


def stored(name: str, gaussians: Gaussians) -> Gaussians:
    """In the order in which a format's writer stores them."""
    return gaussians.take(morton(gaussians.positions)) if FORMATS[name].reorders else gaussians
