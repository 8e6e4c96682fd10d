"""The square that is modelled, and its colours."""

from __future__ import annotations

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.relief.plate import FILLS, SIDE_STEP, framed, plate, side_for
from tempa.engines.splat.relief.spreading import spread


def soft_disc(side: int = 200, radius: float = 70.0) -> np.ndarray:
    """Green, its colour mixed with a blue ground where the edge is soft, as a careless cut leaves it."""
    line = np.arange(side) + 0.5 - side / 2
    alpha = np.clip((radius - np.hypot(line[None, :], line[:, None])) / 6.0 + 0.5, 0.0, 1.0)[..., None]
    colors = np.array((0.0, 0.8, 0.0)) * alpha + np.array((0.0, 0.0, 1.0)) * (1.0 - alpha)
    rgba: np.ndarray = np.rint(255 * np.dstack((colors, alpha))).astype(np.uint8)
    return rgba


def test_frame_has_the_subject_in_its_middle() -> None:
    alpha = np.zeros((100, 300), np.uint8)
    alpha[20:70, 200:280] = 255
    frame = framed(alpha)
    assert frame.side == pytest.approx(80 / FILLS, abs=1.0)
    assert frame.left + frame.side / 2 == pytest.approx(240, abs=1.0)
    assert frame.top + frame.side / 2 == pytest.approx(45, abs=1.0)


def test_nothing_to_see_is_told() -> None:
    with pytest.raises(TempaError) as raised:
        framed(np.full((64, 64), 90, np.uint8))
    assert raised.value.code == "NO_FOREGROUND"


def test_side_is_for_so_many_cells() -> None:
    frame = framed(soft_disc()[..., 3])
    side = side_for(20_000, frame)
    assert side % SIDE_STEP == 0
    assert side**2 * frame.covered == pytest.approx(20_000, rel=0.1)


def test_soft_edge_has_the_subjects_colour() -> None:
    rgba = soft_disc()
    seen = plate(rgba, framed(rgba[..., 3]), 160)
    shown = seen.alpha > 0.05
    assert seen.colors[..., 2][shown].max() < 0.3
    assert seen.colors[..., 2][shown].mean() < 0.01
    assert rgba[..., 2][rgba[..., 3] > 13].max() > 200  # the picture itself had the ground's


def test_padding_is_transparent() -> None:
    rgba = soft_disc()[:120]
    seen = plate(rgba, framed(rgba[..., 3]), 64)
    assert seen.alpha[-1].max() == 0.0


def test_known_values_stay_and_go_on() -> None:
    trust = np.zeros((32, 32))
    trust[:, :10] = 1.0
    values = np.broadcast_to(np.arange(32.0)[:, None, None], (32, 32, 1)).copy()
    values[:, 10:] = 1e6
    found = spread(values, trust)
    np.testing.assert_array_equal(found[:, :10], values[:, :10])
    assert found.max() <= 31.0
