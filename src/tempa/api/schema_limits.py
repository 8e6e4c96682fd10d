"""What the request schemas can only say on a running server: its limits, its engines, their templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tempa.api.doors import DOORS, Door
from tempa.api.parts import ApiParts
from tempa.core.limits import Limits

SCHEMAS = "#/components/schemas/"
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"


def say_limits(made: dict[str, Any], parts: ApiParts) -> None:
    """Write them into an OpenAPI document."""
    schemas = made["components"]["schemas"]
    for door in DOORS:
        _say_of(door, schemas, parts)
    for body in ("RegisterEndpoint", "ChangeEndpoint"):
        schemas[body]["properties"]["url"]["maxLength"] = parts.limits.url_length_max
    for item in made["paths"].values():
        for operation in item.values():
            _bound_query(operation, parts.limits)


def _say_of(door: Door, schemas: dict[str, Any], parts: ApiParts) -> None:
    fields = schemas[door.model.__name__]["properties"]
    about = [engine.describe(parts.limits) for engine in door.offers(parts.engines).values()]
    _bound_options(fields, parts.limits)
    _offer(fields, about, parts.limits)
    named = []
    for name, schema in _parameters(about):
        named.append({"$ref": SCHEMAS + name})
        schemas |= dict(_components(name, schema))
    if named:
        fields["parameters"]["anyOf"] = [*named, {"type": "null"}]


def _bound_options(fields: dict[str, Any], limits: Limits) -> None:
    _branch(fields["webhook_url"], "string")["maxLength"] = limits.url_length_max
    _branch(fields["deadline_seconds"], "number")["maximum"] = limits.deadline_seconds_max
    fields["tags"] |= {
        "maxProperties": limits.tags_max,
        "propertyNames": {"minLength": 1, "maxLength": limits.tag_name_length_max, "pattern": _PRINTABLE},
        "additionalProperties": {
            "type": "string",
            "maxLength": limits.tag_value_length_max,
            "pattern": _PRINTABLE,
        },
    }


def _offer(fields: dict[str, Any], about: Sequence[Mapping[str, Any]], limits: Limits) -> None:
    """What may be named is what runs here."""
    names = sorted(engine["name"] for engine in about)
    templates = sorted({one["id"] for engine in about for one in engine.get("templates", ())})
    formats = sorted({name for engine in about for name in engine.get("export_formats", ())})
    many = _branch(fields["export_formats"], "array")
    many["maxItems"] = limits.export_formats_max
    if names:
        fields["engine"]["enum"] = names
    if templates:
        _branch(fields["template"], "string")["enum"] = templates
    if formats:
        _branch(fields["export_format"], "string")["enum"] = formats
        many["items"] = {"type": "string", "enum": formats}


def _parameters(about: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schemas of the engines' parameters, or of their templates', by a component's name (it has no @)."""
    for engine in about:
        if "parameters" in engine:
            yield engine["name"], engine["parameters"]
        for template in engine.get("templates", ()):
            if "schema" in template:
                yield template["id"].replace("@", "."), template["schema"]


def _components(name: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and those in it: one document has all definitions in one place."""
    whole = json.loads(json.dumps(schema).replace('"#/$defs/', f'"{SCHEMAS}{name}.'))
    for inner, definition in whole.pop("$defs", {}).items():
        yield f"{name}.{inner}", definition
    yield name, whole


def _branch(field: dict[str, Any], kind: str) -> dict[str, Any]:
    """The part of a field's schema that is about values of one type."""
    found: dict[str, Any] = next(one for one in field.get("anyOf", [field]) if one.get("type") == kind)
    return found


def _bound_query(operation: dict[str, Any], limits: Limits) -> None:
    most = {"limit": limits.page_max, "wait": limits.wait_seconds_max}
    operation["parameters"] = [
        {**one, "schema": {**one["schema"], "maximum": most[one["name"]]}} if one["name"] in most else one
        for one in operation.get("parameters", [])
    ]
