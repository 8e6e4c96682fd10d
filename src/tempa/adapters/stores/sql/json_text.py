"""JSON as the tables keep it: compact text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def encode(value: Any) -> str:
    """JSON text of plain values, mappings and sequences. Refuses NaN and infinities: no reader takes them."""
    return _ENCODER.encode(value)


def decode(text: str | None) -> Any:
    """The value of a JSON column; None for a null."""
    return None if text is None else json.loads(text)


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


# One for all: json.dumps makes a new one whenever it is not asked for the plain form.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_as_dict)
