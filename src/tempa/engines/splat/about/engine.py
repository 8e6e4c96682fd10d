"""What all engines of this family share: their inputs, their formats, their pictures of the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.fields import Fields, read_fields, read_formats, schema
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.image import door
from tempa.engines.splat.image.facts import Bounds, Fault
from tempa.jobs.ports import Reading, RunLimits, Takes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tempa.core.limits import Limits

IMAGE_TYPES = ("image/*",)
MESH_TYPES = ("model/*", "application/sla", "application/x-ply", "text/plain")
IMAGE = Takes("image", lambda limits: limits.image_bytes, IMAGE_TYPES, too_large="IMAGE_TOO_LARGE")
DEPTH = Takes(
    "depth", lambda limits: limits.image_bytes, IMAGE_TYPES, required=False, too_large="IMAGE_TOO_LARGE"
)
MESH = Takes("mesh", lambda limits: limits.upload_bytes, MESH_TYPES)


class Preview(Fields):
    """Which pictures to make of the result."""

    width: int = Field(512, ge=64, le=2048, description="px")
    height: int = Field(512, ge=64, le=2048, description="px")
    turntable_frames: int = Field(0, ge=0, le=72, description="Frames of a turn around it; 0: no turntable.")


@dataclass(frozen=True, kw_only=True)
class SplatEngine:
    """`tempa.jobs.ports.Engine`, but for what a subclass says."""

    timeout_seconds: float = 300.0
    memory_bytes: int = 4 << 30
    kind: str = "splat"
    family: str = "3d_reconstruction"
    lane: str = "cpu"
    deterministic: bool = True
    life_cycle: Literal["fork", "resident"] = "fork"
    licences: tuple[str, ...] = ("Apache-2.0, part of Tempa",)

    name: ClassVar[str]
    version: ClassVar[str]  # raise its revision whenever the same work may give other bytes
    model: ClassVar[str]
    module: ClassVar[str]
    takes: ClassVar[tuple[Takes, ...]]
    formats: ClassVar[tuple[str, ...]] = ("ply", "spz")  # when none is asked for

    @property
    def limits(self) -> RunLimits:
        """What one attempt may use."""
        return RunLimits(self.timeout_seconds, self.memory_bytes)

    def parameters(self, limits: Limits) -> type[Fields]:
        """The model of its parameters, within `limits`."""
        raise NotImplementedError

    def look(self, name: str, path: Path, parameters: object, limits: Limits) -> Problem | None:
        """What is wrong with a picture, as far as its header shows; other inputs are judged when read."""
        if name not in {"image", "depth"}:
            return None
        frame = parameters.get("frame") if isinstance(parameters, dict) else None
        seen = door.look(path, Bounds.of(limits), frame=frame if isinstance(frame, int) else None)
        if not isinstance(seen, Fault):
            return None
        message = f"{seen.message} {seen.hint}" if seen.hint else seen.message
        return Problem("", message, seen.limit, seen.code)

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """The work that a body asks for, or everything that is wrong with it."""
        formats, problems = read_formats(body, tuple(FORMATS), self.formats, limits.export_formats_max)
        parameters = read_fields(self.parameters(limits), _object(body, "parameters"), "/parameters")
        preview = read_fields(Preview, _object(body, "preview"), "/preview")
        problems += [*parameters.problems, *preview.problems]
        problems += self.rules(parameters.values, limits)
        if problems:
            return Reading(None, tuple(problems))
        work = {
            "parameters": parameters.values,
            "export_formats": formats,
            "preview": preview.values,
        }
        return Reading(work)

    def rules(self, values: Mapping[str, Any], limits: Limits) -> list[Problem]:
        """What its parameters' shapes cannot say, for those that could be read."""
        del values, limits
        return []

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        """Its entry in `GET /v1/engines`, with the schema of its parameters."""
        return {
            "name": self.name,
            "version": self.version,
            "family": self.family,
            "model": self.model,
            "lane": self.lane,
            "deterministic": self.deterministic,
            "inputs": [{"name": one.name, "required": one.required} for one in self.takes],
            "export_formats": list(FORMATS),
            "parameters": schema(self.parameters(limits)),
            "limits": {"timeout_seconds": self.timeout_seconds, "memory_bytes": self.memory_bytes},
            "licences": list(self.licences),
        }


def _object(body: Mapping[str, Any], name: str) -> object:
    """An optional object: absent and null are the empty one."""
    value = body.get(name)
    return {} if value is None else value
