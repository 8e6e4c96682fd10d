"""Reading a request's fields: strictly, all faults at once, and what could be read in spite of them.

Rules between fields are wanted also when another field is broken, so a model is read field by field:
what is sound comes out as a value, what is not as a problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tempa.core.errors import Problem
from tempa.core.shapes import escape, shape_problems, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_STRICT = ConfigDict(strict=True, allow_inf_nan=False)


class Fields(BaseModel):
    """Base of the models that are read here. They also give the JSON Schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


@dataclass(slots=True)
class Found:
    """What could be read. `values` has no entry for a field that is broken; nested models are dicts."""

    values: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_fields(model: type[Fields], raw: object, pointer: str) -> Found:
    """Read `raw`, a JSON value, as `model`. `pointer` is where it stands in the request."""
    found = Found()
    if not isinstance(raw, dict):
        found.problems.append(Problem(pointer, "Must be an object."))
        return found
    known = ", ".join(model.model_fields)
    found.problems += [
        Problem(f"{pointer}/{escape(name)}", f"This field is not known here. Known: {known}.")
        for name in raw
        if name not in model.model_fields
    ]
    for name in model.model_fields:
        _read_field(found, raw, model, name, f"{pointer}/{name}")
    return found


def _read_field(found: Found, raw: Mapping[str, Any], model: type[Fields], name: str, pointer: str) -> None:
    info = model.model_fields[name]
    if name not in raw:
        if info.is_required():
            found.problems.append(Problem(pointer, "This field is required."))
        else:
            default = info.get_default(call_default_factory=True)
            found.values[name] = default.model_dump() if isinstance(default, Fields) else default
        return
    value = raw[name]
    inner = _model_in(info.annotation)
    if inner is not None and value is not None:
        nested = read_fields(inner, value, pointer)
        found.problems += nested.problems
        if isinstance(value, dict):
            found.values[name] = nested.values
        return
    try:
        found.values[name] = _adapter(model, name).validate_python(whole(value))
    except ValidationError as error:
        found.problems += shape_problems(error, pointer)


def _model_in(annotation: Any) -> type[Fields] | None:
    """The model that a field holds: `Model` itself, or the one in `Model | None`."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Fields):
            return kind
    return None


@cache
def _adapter(model: type[Fields], name: str) -> TypeAdapter[Any]:
    """The validator of one field; made once for each."""
    info = model.model_fields[name]
    kind: Any = Annotated[(info.annotation, *info.metadata)] if info.metadata else info.annotation
    return TypeAdapter(kind, config=_STRICT)


@cache
def schema(model: type[Fields]) -> dict[str, Any]:
    """JSON Schema 2020-12 of a model."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}


def read_formats(
    body: Mapping[str, Any], offered: Sequence[str], default: Sequence[str], most: int
) -> tuple[list[str], list[Problem]]:
    """`export_formats`, or its one-element form `export_format`: what is asked for, and what is wrong."""
    one, many = body.get("export_format"), body.get("export_formats")
    if one is not None and many is not None:
        return [], [Problem("/export_formats", "Give export_format or export_formats, not both.")]
    if many is None:
        return _each_once([*default] if one is None else [one], offered, lambda _: "/export_format")
    if not isinstance(many, list) or not 1 <= len(many) <= most:
        return [], [Problem("/export_formats", f"Must be a list of 1 to {most} formats.", most)]
    return _each_once(many, offered, lambda index: f"/export_formats/{index}")


def _each_once(
    formats: list[Any], offered: Sequence[str], pointer: Callable[[int], str]
) -> tuple[list[str], list[Problem]]:
    problems = []
    for index, name in enumerate(formats):
        if name not in offered:
            names = ", ".join(offered)
            problems.append(Problem(pointer(index), f"This format is not offered. Offered: {names}."))
        elif name in formats[:index]:
            problems.append(Problem(pointer(index), "This format is asked for twice."))
    return formats, problems
