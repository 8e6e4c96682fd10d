"""What can be asked for here: engines, templates, limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from starlette.responses import JSONResponse

from tempa.api.auth import Anyone
from tempa.api.operation import ANY_SCOPE, Told, operation
from tempa.api.parts import ApiParts, Parts
from tempa.core.errors import Refusal
from tempa.core.limits import Limits
from tempa.jobs.wire import Page

router = APIRouter(prefix="/v1", tags=["catalogue"])


class Catalogue(Page[dict[str, Any]]):
    """What there is."""


@router.get(
    "/engines",
    **operation(
        "List engines", scope=ANY_SCOPE, answers={200: Told("What each engine says of itself.", Catalogue)}
    ),
)
async def list_engines(parts: Parts, _: Anyone) -> Response:
    """Only those that run here. Templates are told by their ids; `/v1/templates` has them in full."""
    engines = [_engine_view(parts, name) for name in sorted(parts.engines)]
    return JSONResponse({"items": engines, "next_cursor": None})


@router.get(
    "/templates",
    **operation(
        "List templates",
        scope=ANY_SCOPE,
        answers={200: Told("Each with the JSON Schema of its parameters.", Catalogue)},
    ),
)
async def list_templates(parts: Parts, _: Anyone) -> Response:
    """Schemas are JSON Schema 2020-12, with units, ranges and `x-constraints`."""
    return JSONResponse({"items": list(_templates(parts)), "next_cursor": None})


@router.get(
    "/templates/{template_id}",
    **operation(
        "Look at a template",
        scope=ANY_SCOPE,
        answers={200: Told("The template.", dict[str, Any])},
        refusals=["not-found"],
    ),
)
async def get_template(
    template_id: Annotated[str, Path(description="Its id, with the version: `flanged-tube@1`.")],
    parts: Parts,
    _: Anyone,
) -> Response:
    """With the JSON Schema of its parameters."""
    found = next((one for one in _templates(parts) if one["id"] == template_id), None)
    if found is None:
        offered = ", ".join(str(one["id"]) for one in _templates(parts)) or "none"
        raise Refusal("not-found", f"There is no template {template_id[:80]}. Offered: {offered}.")
    return JSONResponse(found)


@router.get(
    "/limits", **operation("Show the limits", scope=ANY_SCOPE, answers={200: Told("All limits.", Limits)})
)
async def show_limits(parts: Parts, caller: Anyone) -> Response:
    """Sizes in bytes, lengths in mm, times in seconds. `account_*`: the caller's own; null: any number."""
    allowed = await parts.allowances.of(caller.account)
    own = {f"account_{name}": value for name, value in asdict(allowed).items()}
    return JSONResponse({**parts.limits.model_dump(), **own})


def _engine_view(parts: ApiParts, name: str) -> dict[str, Any]:
    view = dict(parts.engines[name].describe(parts.limits))
    if "templates" in view:
        view["templates"] = [template["id"] for template in view["templates"]]
    return view


def _templates(parts: ApiParts) -> Iterator[Mapping[str, Any]]:
    for name in sorted(parts.engines):
        yield from parts.engines[name].describe(parts.limits).get("templates", ())
