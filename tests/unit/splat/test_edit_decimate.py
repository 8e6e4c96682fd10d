"""Fewer Gaussians: the number asked for, the same moments, and nothing else changed."""

from __future__ import annotations

import numpy as np
import pytest

from tempa.engines.splat.edit.decimate import decimate
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.clouds import cloud, covariances


def masses(gaussians: Gaussians) -> np.ndarray:
    """Opacity times area, by the ellipsoid's own half axes: the root of the sum of their squared products."""
    a, b, c = (gaussians.scales.astype(float) ** 2).T
    return np.asarray(gaussians.opacities * np.sqrt(a * b + b * c + c * a))


def moments(gaussians: Gaussians) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, covariance and colour of the whole cloud, by mass: the textbook's law of total covariance."""
    weight = masses(gaussians) / masses(gaussians).sum()
    mean = weight @ gaussians.positions
    away = gaussians.positions - mean
    within = np.einsum("n,nij->ij", weight, covariances(gaussians.scales, gaussians.rotations))
    between = np.einsum("n,ni,nj->ij", weight, away, away)
    return mean, within + between, np.einsum("n,nkc->kc", weight, gaussians.harmonics)


@pytest.mark.parametrize("count", [1, 2, 99, 100, 199])
def test_as_many_as_asked_for(count: int) -> None:
    assert len(decimate(cloud(200), count)) == count


@pytest.mark.parametrize("count", [200, 5000])
def test_fewer_than_asked_for_stay_as_they_are(count: int) -> None:
    gaussians = cloud(200)

    assert decimate(gaussians, count) is gaussians


def test_two_become_one_of_their_mean_and_covariance() -> None:
    gaussians = cloud(2, 2)
    mean, covariance, harmonics = moments(gaussians)

    one = decimate(gaussians, 1)

    assert one.positions[0] == pytest.approx(mean, abs=1e-6)
    assert covariances(one.scales, one.rotations)[0] == pytest.approx(covariance, abs=1e-6)
    assert one.harmonics[0] == pytest.approx(harmonics, abs=1e-5)


def test_mass_is_kept_where_opacity_has_room() -> None:
    gaussians = cloud(2)
    gaussians.positions[1] = gaussians.positions[0] + 0.05
    gaussians.opacities[:] = 0.3

    assert masses(decimate(gaussians, 1)).sum() == pytest.approx(masses(gaussians).sum(), rel=1e-4)


def test_the_whole_keeps_its_moments() -> None:
    gaussians = cloud(800, 1)
    gaussians.opacities[:] *= 0.01  # so that no opacity is cut at 1
    before, after = moments(gaussians), moments(decimate(gaussians, 100))

    for one, other in zip(before, after, strict=True):
        assert other == pytest.approx(one, abs=2e-5)


def test_those_that_are_not_merged_keep_every_bit() -> None:
    gaussians = cloud(300, 1)
    made = decimate(gaussians, 290)

    before = {row.tobytes() for row in gaussians.positions}
    same = [row.tobytes() in before for row in made.positions]
    assert sum(same) >= 280
    index = {row.tobytes(): number for number, row in enumerate(gaussians.positions)}
    kept = [index[row.tobytes()] for row, is_same in zip(made.positions, same, strict=True) if is_same]
    assert np.array_equal(made.harmonics[same], gaussians.harmonics[kept])
    assert np.array_equal(made.rotations[same], gaussians.rotations[kept])
    assert kept == sorted(kept)


def test_like_is_merged_with_like() -> None:
    """Two colours side by side in one place: after merging down to two, they have not mixed."""
    gaussians = cloud(64)
    gaussians.positions[:] = np.random.default_rng(4).normal(0, 0.01, (64, 3))
    gaussians.scales[:] = 0.02
    gaussians.opacities[:] = 0.5
    gaussians.harmonics[:32, 0], gaussians.harmonics[32:, 0] = 1.7, -1.7

    shades = decimate(gaussians, 2).harmonics[:, 0, 0]

    assert sorted(shades.tolist()) == pytest.approx([-1.7, 1.7], abs=1e-3)


def test_what_is_too_faint_to_see_moves_nothing() -> None:
    gaussians = cloud(50)
    gaussians.opacities[1:] = 0.0

    one = decimate(gaussians, 1)

    assert one.positions[0] == pytest.approx(gaussians.positions[0], abs=1e-5)
    assert one.scales[0] == pytest.approx(np.sort(gaussians.scales[0]), rel=1e-2)


def test_all_in_one_place() -> None:
    gaussians = cloud(100)
    gaussians.positions[:] = 0.25

    assert decimate(gaussians, 3).positions == pytest.approx(0.25)


def test_the_same_each_time_and_sound() -> None:
    one, other = decimate(cloud(3000, 1), 400), decimate(cloud(3000, 1), 400)

    for name in ("positions", "scales", "rotations", "opacities", "harmonics"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert np.linalg.norm(one.rotations, axis=1) == pytest.approx(1, abs=1e-6)
    assert one.opacities.min() >= 0
    assert one.opacities.max() <= 1
