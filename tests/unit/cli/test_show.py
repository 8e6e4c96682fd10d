"""What was measured, in words with units."""

from __future__ import annotations

from tempa.cli.show import measurement_lines


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
