"""What a schema finds, as problems: one translation for every room that reads requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.errors import Problem

if TYPE_CHECKING:
    from pydantic import ValidationError

_BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length", "expected")


def shape_problems(error: ValidationError, pointer: str = "") -> list[Problem]:
    """Pydantic's findings as problems; `pointer` is where the value stands in the request."""
    found = []
    for entry in error.errors(include_url=False, include_input=False):
        where = pointer + "".join(f"/{escape(str(part))}" for part in entry["loc"])
        context = entry.get("ctx", {})
        limit = next((context[bound] for bound in _BOUNDS if bound in context), None)
        found.append(Problem(where, f"{entry['msg']}.", limit))
    return found


def whole(value: object) -> object:
    """An integral float as the integer it is: 6.0 and 6 are one number in JSON. Floats take both."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def escape(name: str) -> str:
    """A name as a part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
