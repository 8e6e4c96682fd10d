"""The demo's formula against the promised figure and against quadrature."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tempa.cli.closed_form import flanged_tube_volume
from tempa.testing.seeds import SEED_001


def test_the_promised_figure() -> None:
    """CONTRACTS section 2: 2801746.16196747 mm3 for the example."""
    assert flanged_tube_volume(SEED_001["parameters"]) == pytest.approx(2801746.16196747, abs=5e-9)


def by_slices(parameters: dict[str, Any]) -> float:
    """The integral of the cross-section over z; the fillets' part by Simpson's rule over the angle."""
    outer: float = parameters["outer_diameter"] / 2
    inner: float = parameters["inner_diameter"] / 2
    fillet: float = parameters["fillet_radius"]
    length: float = parameters["length"]
    pattern = parameters["hole_pattern"]
    empty: float = math.pi * (inner**2 + pattern["count"] * (pattern["hole_diameter"] / 2) ** 2)

    def slice_of_rim(angle: float) -> float:
        radius = outer - fillet + fillet * math.cos(angle)
        return math.pi * radius**2 * fillet * math.cos(angle)  # dz = fillet * cos(angle) * d(angle)

    steps = 2000
    width = math.pi / 2 / steps
    weights = [1, *([4, 2] * (steps // 2))[:-1], 1]
    rim = width / 3 * math.fsum(weight * slice_of_rim(width * n) for n, weight in enumerate(weights))
    return math.pi * outer**2 * (length - 2 * fillet) + 2 * rim - empty * length


@pytest.mark.parametrize("fillet", [0.01, 2.5, 20.0])
def test_it_agrees_with_quadrature(fillet: float) -> None:
    parameters = {**SEED_001["parameters"], "fillet_radius": fillet}

    assert flanged_tube_volume(parameters) == pytest.approx(by_slices(parameters), rel=1e-12)


def test_fillet_and_holes_may_be_absent() -> None:
    tube = {"outer_diameter": 20.0, "inner_diameter": 10.0, "length": 3.0}

    assert flanged_tube_volume(tube) == pytest.approx(math.pi * 75 * 3, rel=1e-15)
