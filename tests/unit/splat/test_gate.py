"""Each bound of the output gate refuses what lies beyond it, and only that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat import gate
from tempa.engines.splat.gaussians import Gaussians, of_colors

N = 100


def cloud(n: int = N) -> Gaussians:
    """Fit to be seen: on a line from (-0.5, 0, 0.25) to (0.5, 0, 0.25), opacities 0.5 to 1."""
    positions = np.stack((np.linspace(-0.5, 0.5, n), np.zeros(n), np.full(n, 0.25)), axis=1)
    rotations = np.tile((0.5, 0.5, -0.5, 0.5), (n, 1))
    return of_colors(positions, np.full((n, 3), 0.01), rotations, np.linspace(0.5, 1.0, n), np.zeros((n, 3)))


def refusal(gaussians: Gaussians, **options: Any) -> TempaError:
    with pytest.raises(TempaError) as caught:
        gate.accept(gaussians, **options)
    return caught.value


def test_what_passes_is_measured() -> None:
    measured = gate.accept(cloud(), asked=N)

    assert measured["gaussians"] == N
    assert measured["sh_degree"] == 0
    assert measured["opacity"] == pytest.approx({"min": 0.5, "mean": 0.75, "max": 1.0})
    assert measured["bounding_box"] == [[-0.5, 0.0, 0.25], [0.5, 0.0, 0.25]]
    assert measured["extent"] == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["positions", "scales", "rotations", "opacities", "harmonics"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_a_numerical_failure(name: str, value: float) -> None:
    bad = cloud()
    getattr(bad, name)[[3, 7]] = value

    error = refusal(bad)

    assert error.code == "NUMERICAL_FAILURE"
    assert error.detail == {"not_finite": {name: 2}, "gaussians": N}


@pytest.mark.parametrize(("found", "passes"), [(90, True), (89, False)])
def test_nine_of_ten_asked_for_must_be_there(found: int, passes: bool) -> None:  # noqa: FBT001 - a table's column
    if passes:
        assert gate.accept(cloud(found), asked=N)["gaussians"] == found
    else:
        error = refusal(cloud(found), asked=N)
        assert error.code == "DEGENERATE_OUTPUT"
        assert error.detail == {"gaussians": 89, "limit": 90, "asked": 100}


@pytest.mark.parametrize("asked", [None, 0, 5])
def test_nothing_is_no_result_whatever_was_asked_for(asked: int | None) -> None:
    assert refusal(cloud(0), asked=asked).detail["gaussians"] == 0


def test_all_in_one_point_has_no_extent() -> None:
    bad = cloud()
    bad.positions[:] = 0.1

    error = refusal(bad)

    assert error.code == "DEGENERATE_OUTPUT"
    assert error.detail == {"extent": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize(("faint", "passes"), [(50, True), (51, False)])
def test_half_may_be_too_faint_to_show(faint: int, passes: bool) -> None:  # noqa: FBT001 - a table's column
    some = cloud()
    some.opacities[:faint] = 1.0 / 256.0
    some.opacities[faint:] = 1.0 / 254.0
    if passes:
        assert gate.accept(some)["gaussians"] == N
    else:
        error = refusal(some)
        assert error.code == "DEGENERATE_OUTPUT"
        assert error.detail == {"faint_share": 0.51, "limit": 0.5}


@pytest.mark.parametrize("value", [-0.01, 1.01])
def test_an_opacity_lies_between_0_and_1(value: float) -> None:
    bad = cloud()
    bad.opacities[5] = value

    assert refusal(bad).detail == {"opacities_outside": 1, "gaussians": N}


@pytest.mark.parametrize("value", [0.0, -0.1])
def test_a_scale_is_above_0(value: float) -> None:
    bad = cloud()
    bad.scales[4, 1] = value

    assert refusal(bad).detail == {"scales_not_positive": 1, "gaussians": N}


def test_a_quaternion_has_unit_length() -> None:
    bad = cloud()
    bad.rotations[2] *= 1.002

    assert refusal(bad).detail == {"rotations_not_unit": 1, "gaussians": N}


def test_a_quaternion_may_be_off_by_rounding() -> None:
    some = cloud()
    some.rotations[2] *= 1.0005

    assert gate.accept(some)["gaussians"] == N
