"""The part that the tests of the exports share: the example of the contract."""

from __future__ import annotations

from typing import Any

from tempa.testing.seeds import SEED_001

FORMATS = ["step", "brep", "stl", "glb", "3mf"]
PARAMETERS: dict[str, Any] = SEED_001["parameters"]
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
