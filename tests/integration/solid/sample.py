"""The part that the tests of the exports share: the example of the contract."""

from __future__ import annotations

from typing import Any

FORMATS = ["step", "brep", "stl", "glb", "3mf"]
PARAMETERS: dict[str, Any] = {
    "outer_diameter": 120.5,
    "inner_diameter": 45.0,
    "length": 300.0,
    "fillet_radius": 2.5,
    "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
}
VOLUME = 2801746.16196747  # mm3, by the closed form of the contract


def work(**changes: Any) -> dict[str, Any]:
    """Work for the example; `parameters` are merged, all else is replaced."""
    parameters = PARAMETERS | changes.pop("parameters", {})
    return {
        "template": "flanged-tube@1",
        "parameters": parameters,
        "export_formats": ["step"],
        "tolerance": {"linear": 0.1, "angular": 20.0},
        "checks": {},
        **changes,
    }
