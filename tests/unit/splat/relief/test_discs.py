"""Discs in a tangent plane: against the singular values, and against scipy's rotations."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from tempa.engines.splat.relief.discs import footprint, quaternions


def tangents(count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    dice = np.random.default_rng(5)
    return dice.normal(size=(count, 3)), dice.normal(size=(count, 3))


def test_lengths_are_the_singular_values() -> None:
    across, up = tangents()
    _, lengths = footprint(across.copy(), up.copy())
    true = np.linalg.svd(np.stack((across, up), axis=2), compute_uv=False)
    np.testing.assert_allclose(np.sort(lengths, axis=1)[:, ::-1], true, rtol=1e-9)


def test_axes_span_the_same_ellipse() -> None:
    across, up = tangents()
    axes, lengths = footprint(across.copy(), up.copy())
    scaled = axes[:, :, :2] * lengths[:, None, :]
    found = scaled @ scaled.transpose(0, 2, 1)
    true = across[:, :, None] * across[:, None, :] + up[:, :, None] * up[:, None, :]
    np.testing.assert_allclose(found, true, atol=1e-12)


def test_axes_are_right_handed() -> None:
    axes, _ = footprint(*tangents())
    np.testing.assert_allclose(np.linalg.det(axes), 1.0)


def test_quaternions_are_those_of_scipy() -> None:
    rotations = Rotation.random(500, random_state=7)
    matrices = np.concatenate((rotations.as_matrix(), np.diag((-1.0, -1.0, 1.0))[None], np.eye(3)[None]))
    found = quaternions(matrices)
    back = Rotation.from_quat(found[:, (1, 2, 3, 0)]).as_matrix()
    np.testing.assert_allclose(back, matrices, atol=1e-12)
