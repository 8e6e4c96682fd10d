"""Clouds that the raster's tests draw."""

from __future__ import annotations

import numpy as np

from tempa.engines.splat.gaussians import Gaussians, of_colors


def wild(n: int, *, degree: int = 0, seed: int = 1) -> Gaussians:
    """Turned and stretched every way, thin to thick, faint to opaque, some of them off the picture."""
    dice = np.random.default_rng(seed)
    rotations = dice.normal(size=(n, 4))
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    return Gaussians(
        dice.uniform(-0.9, 0.9, (n, 3)).astype(np.float32),
        np.exp(dice.uniform(np.log(0.002), np.log(0.3), (n, 3))).astype(np.float32),
        rotations.astype(np.float32),
        dice.uniform(0.0, 1.0, n).astype(np.float32),
        (0.4 * dice.normal(size=(n, (degree + 1) ** 2, 3))).astype(np.float32),
    )


def dots(
    positions: list[tuple[float, float, float]],
    colors: list[tuple[float, float, float]],
    *,
    scale: float = 0.05,
    opacity: float = 1.0,
) -> Gaussians:
    """Round ones of one size."""
    n = len(positions)
    return of_colors(
        np.array(positions),
        np.full((n, 3), scale),
        np.tile((1.0, 0.0, 0.0, 0.0), (n, 1)),
        np.full(n, opacity),
        np.array(colors),
    )
