"""What the request schemas can only say on a running server: its limits, its engines, their templates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tempa.api.parts import ApiParts
from tempa.core.limits import Limits

SCHEMAS = "#/components/schemas/"
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"


def say_limits(made: dict[str, Any], parts: ApiParts) -> None:
    """Write them into an OpenAPI document."""
    schemas = made["components"]["schemas"]
    fields = schemas["GenerateModel"]["properties"]
    _bound_options(fields, parts.limits)
    _offer(fields, parts)
    for body in ("RegisterEndpoint", "ChangeEndpoint"):
        schemas[body]["properties"]["url"]["maxLength"] = parts.limits.url_length_max
    templates = dict(_templates(parts))
    schemas |= templates
    named = [{"$ref": SCHEMAS + name} for name in templates if "x-constraints" in templates[name]]
    if named:
        fields["parameters"]["anyOf"] = [*named, {"type": "null"}]
    for item in made["paths"].values():
        for operation in item.values():
            _bound_query(operation, parts.limits)


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


def _offer(fields: dict[str, Any], parts: ApiParts) -> None:
    """What may be named is what runs here."""
    about = [engine.describe(parts.limits) for engine in parts.engines.values()]
    fields["engine"]["enum"] = sorted(parts.engines)
    templates = sorted({one["id"] for engine in about for one in engine.get("templates", ())})
    formats = sorted({name for engine in about for name in engine.get("export_formats", ())})
    many = _branch(fields["export_formats"], "array")
    many["maxItems"] = parts.limits.export_formats_max
    if templates:
        _branch(fields["template"], "string")["enum"] = templates
    if formats:
        _branch(fields["export_format"], "string")["enum"] = formats
        many["items"] = {"type": "string", "enum": formats}


def _templates(parts: ApiParts) -> Iterator[tuple[str, dict[str, Any]]]:
    """Their schemas as components. A component's name has no @, and one document all definitions."""
    for engine in parts.engines.values():
        for template in engine.describe(parts.limits).get("templates", ()):
            if "schema" in template:
                name = template["id"].replace("@", ".")
                text = json.dumps(template["schema"]).replace('"#/$defs/', f'"{SCHEMAS}{name}.')
                schema = json.loads(text)
                for inner, definition in schema.pop("$defs", {}).items():
                    yield f"{name}.{inner}", definition
                yield name, schema


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
