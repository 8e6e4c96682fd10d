"""Request bodies that the product was asked to accept, as they were asked for."""

from __future__ import annotations

from typing import Any

SEED_001: dict[str, Any] = {
    "engine": "opencascade-brep",
    "export_format": "step",
    "parameters": {
        "outer_diameter": 120.5,
        "inner_diameter": 45.0,
        "length": 300.0,
        "fillet_radius": 2.5,
        "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
    },
}
"""The flanged tube of the first source recipe: millimetres, template `flanged-tube@1`."""
