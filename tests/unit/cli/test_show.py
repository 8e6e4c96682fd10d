"""What was measured, in words with units."""

from __future__ import annotations

import pytest

from tempa.cli.show import duration, measurement_lines, time_left
from tempa.jobs.wire import ProgressView


def test_measurements_have_units_and_no_more_digits_than_they_are_worth() -> None:
    measured = {
        "volume": 2801746.1619674717,
        "area": 230395.8,
        "solids": 1,
        "watertight": True,
        "center_of_mass": [1.2e-15, -3e-14, 150.00000000000003],
        "bounding_box": [[-60.25, -60.25, 0.0], [60.25, 60.25, 300.0]],
        "reference": {"method": "closed-form", "relative_error": 1.66e-16},
    }

    assert measurement_lines(measured) == [
        "volume: 2801746.16 mm3",
        "area: 230395.8 mm2",
        "solids: 1",
        "watertight: yes",
        "center of mass: [0, 0, 150] mm",
        "bounding box: [[-60.25, -60.25, 0], [60.25, 60.25, 300]] mm",
        "reference: method closed-form, relative error 1.66e-16",
    ]


@pytest.mark.parametrize(
    ("median", "between", "words"),
    [
        (None, None, ""),
        (12.0, (8.04, 75.0), "About 12 s left (by past jobs, 8.0 s to 1 min 15 s)"),
        (12.0, (11.6, 12.4), "About 12 s left"),  # an interval that reads as one time is none
        (12.0, None, "About 12 s left"),
        (0.0, (0.0, 13.0), "Longer at it than most past jobs: up to 13 s more"),
        (0.0, (0.0, 0.0), "Longer at it than past jobs: no telling when it ends"),
    ],
)
def test_what_is_left_is_told_as_an_interval(
    median: float | None, between: tuple[float, float] | None, words: str
) -> None:
    progress = ProgressView(stage="meshing", eta_seconds=median, eta_range_seconds=between)
    assert time_left(progress) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7229.0, "2 h 0 min"),
        (93_600.0, "26 h 0 min"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, words: str) -> None:
    assert duration(seconds) == words
