"""Values carried on from where they are known to where they are not.

By pull and push (Gortler et al., "The Lumigraph", 1996, section 3.4): means of what is known on ever
coarser grids, and back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def spread(values: NDArray[Any], trust: NDArray[Any]) -> NDArray[Any]:
    """Values (n, n, c) with their like from nearby where trust (n, n), 0 to 1, is low."""
    return _filled(values * trust[..., None], trust)


def _filled(weighted: NDArray[Any], trust: NDArray[Any]) -> NDArray[Any]:
    if len(trust) <= 1 or trust.min() >= 1.0:
        known: NDArray[Any] = weighted / np.maximum(trust, trust.dtype.type(1e-12))[..., None]
        return known
    behind = _doubled(_filled(*_halved(weighted, trust)), len(trust))
    filled: NDArray[Any] = weighted + (1.0 - trust)[..., None] * behind
    return filled


def _halved(weighted: NDArray[Any], trust: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """On a grid of half the side. Trust adds up, to 1 at most: four that are trusted a bit make a whole."""
    side = (len(trust) + 1) // 2
    pad = 2 * side - len(trust)
    sums = np.pad(trust, ((0, pad), (0, pad))).reshape(side, 2, side, 2).sum(axis=(1, 3))
    colors = (
        np.pad(weighted, ((0, pad), (0, pad), (0, 0)))
        .reshape(side, 2, side, 2, weighted.shape[2])
        .sum(axis=(1, 3))
    )
    held = np.minimum(sums, 1.0)
    return colors * (held / np.maximum(sums, trust.dtype.type(1e-12)))[..., None], held


def _doubled(colors: NDArray[Any], side: int) -> NDArray[Any]:
    """On a grid of twice the side, linear between centres."""
    for axis in (0, 1):
        before = np.concatenate(
            (colors.take([0], axis), colors.take(range(colors.shape[axis] - 1), axis)), axis
        )
        after = np.concatenate(
            (colors.take(range(1, colors.shape[axis]), axis), colors.take([-1], axis)), axis
        )
        pair = np.stack((0.75 * colors + 0.25 * before, 0.75 * colors + 0.25 * after), axis=axis + 1)
        shape = list(colors.shape)
        shape[axis] *= 2
        colors = pair.reshape(shape)
    return np.ascontiguousarray(colors[:side, :side])
