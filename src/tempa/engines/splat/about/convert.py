"""What the engine `splat-convert` is. How it runs is `tempa.engines.splat.splat_convert`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from tempa.core.errors import Problem
from tempa.core.fields import Fields
from tempa.engines.splat.about.engine import SplatEngine
from tempa.jobs.ports import Takes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.limits import Limits

FILE_TYPES = ("model/*", "application/x-ply", "application/zip", "application/gzip", "text/plain")
_Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
_Point = Annotated[list[_Coordinate], Field(min_length=3, max_length=3)]
_Size = Annotated[float, Field(gt=0, le=1e6)]


class Sphere(Fields):
    """A ball; what has its centre in it stays."""

    center: _Point = Field(description="x right, y up, z towards the viewer.")
    radius: _Size


class Box(Fields):
    """A box along the axes; what has its centre in it stays."""

    min: _Point = Field(description="Its least corner: x right, y up, z towards the viewer.")
    max: _Point = Field(description="Its greatest corner.")


class Filter(Fields):
    """What stays. What is not finite never does."""

    opacity_min: float = Field(0.0, ge=0, le=1, description="Least opacity.")
    scale_min: _Size | None = Field(None, description="Least of the largest of a Gaussian's three scales.")
    scale_max: _Size | None = Field(None, description="Most of the largest of a Gaussian's three scales.")
    sphere: Sphere | None = None


@cache
def parameters(limits: Limits) -> type[Fields]:
    """The model of the parameters; one for each set of limits."""

    class SplatConvertParameters(Fields):
        """What to do before it is written, in this order."""

        filter: Filter = Field(default_factory=Filter)
        crop: Box | None = None
        sh_degree: Annotated[int, Field(ge=0, le=3)] | None = Field(
            None, description="Leave out spherical harmonics of a higher degree."
        )
        num_gaussians: Annotated[int, Field(ge=1, le=limits.num_gaussians_max)] | None = Field(
            None, description="Thin out to so many, merging neighbours."
        )
        source_axes: Literal["RDF", "RUB"] | None = Field(
            None,
            description="The file's axes, where they are not its format's own: x right, then y down and z "
            "forward, or y up and z backward.",
        )
        order: Literal["as_is", "morton"] = Field("as_is", description="How they lie in the file.")

    return SplatConvertParameters


@dataclass(frozen=True, kw_only=True)
class SplatConvert(SplatEngine):
    """Files of Gaussians to other formats, filtered, cropped and thinned out."""

    kind: str = "conv"
    family: str = "conversion"
    name: ClassVar[str] = "splat-convert"
    version: ClassVar[str] = "1"
    model: ClassVar[str] = "splat-convert"
    module: ClassVar[str] = "tempa.engines.splat.splat_convert"
    takes: ClassVar[tuple[Takes, ...]] = (Takes("file", lambda limits: limits.upload_bytes, FILE_TYPES),)
    formats: ClassVar[tuple[str, ...]] = ("ply",)

    def parameters(self, limits: Limits) -> type[Fields]:
        """The model of its parameters."""
        return parameters(limits)

    def rules(self, values: Mapping[str, Any], limits: Limits) -> list[Problem]:
        """Boxes and scales that leave nothing by themselves."""
        del limits
        problems = []
        crop, chosen = values.get("crop"), values.get("filter") or {}
        low, high = chosen.get("scale_min"), chosen.get("scale_max")
        if crop and any(least > most for least, most in zip(crop["min"], crop["max"], strict=True)):
            problems.append(Problem("/parameters/crop/max", "Must not be below min."))
        if low is not None and high is not None and low > high:
            problems.append(Problem("/parameters/filter/scale_max", "Must not be below scale_min.", low))
        return problems
