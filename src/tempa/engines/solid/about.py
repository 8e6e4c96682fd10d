"""What the engine `opencascade-brep` is. Importing this loads no kernel; how it runs is `opencascade`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.solid.reading import Fields, Found, Template, read_fields
from tempa.engines.solid.templates import flanged_tube
from tempa.jobs.ports import Reading, RunLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tempa.core.limits import Limits

KERNEL = "occt-8.0.1"
REVISION = 2  # raise it whenever the same work may give other bytes
FORMATS = ("step", "brep", "stl", "glb", "3mf")
TEMPLATES: Mapping[str, Template] = {flanged_tube.ID: flanged_tube}

_Linear = Annotated[float, Field(ge=1e-3, le=1e3)]
_Angular = Annotated[float, Field(ge=1.0, le=90.0)]
_Number = Annotated[float, Field(ge=-1e19, le=1e19)]
_Corner = Annotated[list[_Number], Field(min_length=3, max_length=3)]


class Tolerance(Fields):
    """How closely meshes follow the exact surface."""

    linear: _Linear = Field(0.1, description="Largest distance from the surface, mm.")
    angular: _Angular = Field(20.0, description="Largest angle between neighbouring facets, degrees.")


class Checks(Fields):
    """What must hold for the part."""

    solids: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    volume_min: Annotated[float, Field(ge=0, le=1e19)] | None = None
    volume_max: Annotated[float, Field(ge=0, le=1e19)] | None = None
    bounding_box: Annotated[list[_Corner], Field(min_length=2, max_length=2)] | None = None
    watertight: bool | None = None


@dataclass(frozen=True, kw_only=True)
class OpencascadeBrep:
    """Exact boundary representations by OpenCASCADE: `tempa.jobs.ports.Engine`."""

    timeout_seconds: float = 300.0
    memory_bytes: int = 4 << 30
    name: str = "opencascade-brep"
    version: str = f"{KERNEL}+{REVISION}"
    kind: str = "cad"
    family: str = "cad_generation"
    model: str = "opencascade-brep"
    lane: str = "cpu"
    deterministic: bool = True
    life_cycle: Literal["fork"] = "fork"
    module: str = "tempa.engines.solid.opencascade"

    @property
    def limits(self) -> RunLimits:
        """What one attempt may use."""
        return RunLimits(self.timeout_seconds, self.memory_bytes)

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """The work that a body asks for, or everything that is wrong with it."""
        template = flanged_tube.ID if body.get("template") is None else body["template"]
        formats, problems = _read_formats(body, limits.export_formats_max)
        parameters = _read_parameters(body, template, limits)
        tolerance = read_fields(Tolerance, _object(body, "tolerance"), "/tolerance")
        checks = _read_checks(body)
        for found in (parameters, tolerance, checks):
            problems += found.problems
        if problems:
            return Reading(None, tuple(problems))
        work = {
            "template": template,
            "parameters": parameters.values,
            "export_formats": formats,
            "tolerance": tolerance.values,
            "checks": checks.values,
        }
        return Reading(work)

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        """Its entry in `GET /v1/engines`. Its templates' schemas show `limits`."""
        return {
            "name": self.name,
            "version": self.version,
            "family": self.family,
            "lane": self.lane,
            "deterministic": self.deterministic,
            "export_formats": list(FORMATS),
            "limits": {"timeout_seconds": self.timeout_seconds, "memory_bytes": self.memory_bytes},
            "licences": ["OpenCASCADE Technology: LGPL-2.1 with exception"],
            "templates": [template.describe(limits) for template in TEMPLATES.values()],
        }


def _object(body: Mapping[str, Any], name: str) -> object:
    """An optional object: absent and null are the empty one."""
    value = body.get(name)
    return {} if value is None else value


def _read_parameters(body: Mapping[str, Any], template: object, limits: Limits) -> Found:
    if body.get("tree") is not None:
        message = "Feature trees are not offered by this version; use a template."
        return Found(problems=[Problem("/tree", message)])
    if not isinstance(template, str) or template not in TEMPLATES:
        known = ", ".join(TEMPLATES)
        return Found(problems=[Problem("/template", f"This template is not known here. Known: {known}.")])
    if body.get("parameters") is None:
        return Found(problems=[Problem("/parameters", "This field is required.")])
    return TEMPLATES[template].read(body["parameters"], "/parameters", limits)


def _read_checks(body: Mapping[str, Any]) -> Found:
    found = read_fields(Checks, _object(body, "checks"), "/checks")
    low, high = found.values.get("volume_min"), found.values.get("volume_max")
    if low is not None and high is not None and low > high:
        found.problems.append(Problem("/checks/volume_max", "Must not be below volume_min.", low))
    box = found.values.get("bounding_box")
    if box is not None and any(least > most for least, most in zip(*box, strict=True)):
        message = "Must be [[x, y, z], [x, y, z]], the least corner first."
        found.problems.append(Problem("/checks/bounding_box", message))
    return found


def _read_formats(body: Mapping[str, Any], most: int) -> tuple[list[str], list[Problem]]:
    one, many = body.get("export_format"), body.get("export_formats")
    if one is not None and many is not None:
        return [], [Problem("/export_formats", "Give export_format or export_formats, not both.")]
    if many is None:
        return _checked(["step"] if one is None else [one], lambda _: "/export_format")
    if not isinstance(many, list) or not 1 <= len(many) <= most:
        return [], [Problem("/export_formats", f"Must be a list of 1 to {most} formats.", most)]
    return _checked(many, lambda index: f"/export_formats/{index}")


def _checked(formats: list[Any], pointer: Callable[[int], str]) -> tuple[list[str], list[Problem]]:
    problems = []
    for index, name in enumerate(formats):
        if name not in FORMATS:
            offered = ", ".join(FORMATS)
            problems.append(Problem(pointer(index), f"This format is not offered. Offered: {offered}."))
        elif name in formats[:index]:
            problems.append(Problem(pointer(index), "This format is asked for twice."))
    return formats, problems
