"""Values in few bits: what several formats quantise alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.gaussians import SH_C0

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST_THREE_MAX = np.sqrt(0.5)  # of four components of a unit quaternion, only one can be larger
_OTHERS = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def to_bytes(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """0 to 1 as 0 to 255, rounded and clipped."""
    steps: NDArray[np.float32] = np.rint(np.clip(values, 0, 1) * np.float32(255))
    return steps.astype(np.uint8)


def from_bytes(values: NDArray[np.uint8]) -> NDArray[np.float32]:
    """0 to 255 as 0 to 1."""
    return values.astype(np.float32) / np.float32(255)


def coefficients_of(colors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of degree 0, (n, 1, 3), for colours (n, 3)."""
    return np.ascontiguousarray(((colors - np.float32(0.5)) / np.float32(SH_C0))[:, None, :])


def harmonics_of(base: NDArray[np.floating[Any]], rest: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Degree 0 (n, 1, 3) and what is above it (n, k, 3) in one array, C-contiguous whatever they are."""
    harmonics = np.empty((len(base), 1 + rest.shape[1], 3), np.float32)
    harmonics[:, :1], harmonics[:, 1:] = base, rest
    return harmonics


def smallest_three(quaternions: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Which component is the largest, and the other three (in their order) of the quaternion with it > 0."""
    largest = np.argmax(np.abs(quaternions), axis=1)
    rows = np.arange(len(quaternions))
    negative = quaternions[rows, largest] < 0
    others = quaternions[rows[:, None], _OTHERS[largest]]
    return largest, np.where(negative[:, None], -others, others)


def from_smallest_three(largest: NDArray[np.integer], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """The quaternions: the largest component is what is missing to length 1."""
    quaternions = np.empty((len(others), 4), np.float32)
    rows = np.arange(len(others))
    rest = np.einsum("nc,nc->n", others, others)
    quaternions[rows[:, None], _OTHERS[largest]] = others
    quaternions[rows, largest] = np.sqrt(np.maximum(np.float32(1) - rest, 0))
    return quaternions
