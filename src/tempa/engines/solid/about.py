"""What the engine `opencascade-brep` is. Importing this loads no kernel; how it runs is `opencascade`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.fields import Fields, Found, read_fields, read_formats
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.solid.templates import flanged_tube
from tempa.jobs.ports import Reading, RunLimits, Takes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.core.limits import Limits

KERNEL = "occt-8.0.1"
REVISION = 2  # raise it whenever the same work may give other bytes
FORMATS = ("step", "brep", "stl", "glb", "3mf")


class Template(Protocol):
    """A template's module: what parameters it takes, and how they are read."""

    @property
    def ID(self) -> str: ...  # noqa: N802 - a module's constant: "flanged-tube@1"
    def read(self, raw: object, pointer: str, limits: Limits) -> Found: ...
    def describe(self, limits: Limits) -> dict[str, Any]: ...


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
    takes: tuple[Takes, ...] = ()

    @property
    def limits(self) -> RunLimits:
        """What one attempt may use."""
        return RunLimits(self.timeout_seconds, self.memory_bytes)

    def look(self, name: str, path: Path, parameters: object, limits: Limits) -> Problem | None:
        """It takes no input."""
        raise NotImplementedError

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """The work that a body asks for, or everything that is wrong with it."""
        template = flanged_tube.ID if body.get("template") is None else body["template"]
        formats, problems = read_formats(body, FORMATS, ("step",), limits.export_formats_max)
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
