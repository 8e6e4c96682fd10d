"""What the engines that take a picture share: how it is read, and what the operator says of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from tempa.core.fields import Fields
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.splat.about.engine import SplatEngine
from tempa.engines.splat.image.facts import Bounds
from tempa.jobs.ports import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.limits import Limits

_Channels = Annotated[tuple[float, float, float], Field()]


class PictureFields(Fields):
    """How a picture is read: the parameters of every engine that takes one."""

    mask: Literal["auto", "alpha", "border-flood", "model"] = Field(
        "auto", description="How the object is told from its background; auto: by its alpha, else by a flood."
    )
    flood_tolerance: float = Field(10.0, gt=0, le=100, description="Of border-flood, in CIELAB units.")
    frame: Annotated[int, Field(ge=0, le=0)] | None = Field(
        None, description="0 takes the first frame of an animation; without it animations are refused."
    )


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("must be an absolute path")
    return path


class MattingOptions(BaseModel):
    """The operator's matting model, an ONNX file: for `mask: "model"`, and for `auto` where all else fails.

    Colours go in as (sRGB from 0 to 1 - `mean`) / `std`. A file of another SHA-256 is not loaded.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, AfterValidator(_absolute)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    mean: _Channels = (0.5, 0.5, 0.5)
    std: _Channels = (1.0, 1.0, 1.0)


class PictureOptions(BaseModel):
    """`[engines.<name>.options]` of an engine that takes a picture."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    matting: MattingOptions | None = None


@dataclass(frozen=True, kw_only=True)
class PictureEngine(SplatEngine):
    """An engine that takes a picture. `options` as `PictureOptions` has them.

    Raises:
        ValueError: an option is none, or has a value that it cannot have.
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Options that cannot be meant are told before a server starts with them."""
        _ = self.picture_options

    @cached_property
    def picture_options(self) -> PictureOptions:
        """The options, checked."""
        try:
            return PictureOptions.model_validate(dict(self.options))
        except ValidationError as error:
            raise ValueError(told(error)) from None

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """As of all engines; with what the child has to know of this server."""
        reading = super().read(body, limits)
        if reading.work is None:
            return reading
        return Reading({**reading.work, **self._of_this_server(limits)})

    def _of_this_server(self, limits: Limits) -> dict[str, Any]:
        """Only what is not as by default: it is part of what makes two works equal."""
        said: dict[str, Any] = {}
        if (matting := self.picture_options.matting) is not None:
            said["matting"] = matting.model_dump(mode="json")
        if (bounds := Bounds.of(limits)) != Bounds():
            said["bounds"] = {"bytes_max": bounds.bytes_max, "pixels_max": bounds.pixels_max}
        return said


def told(error: ValidationError) -> str:
    """What is wrong with options, in one line."""
    faults = (f"{'.'.join(map(str, one['loc'])) or 'options'}: {one['msg']}" for one in error.errors())
    return "; ".join(faults)
