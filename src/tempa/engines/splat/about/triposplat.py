"""What the engine `triposplat` is: TripoSplat, of an operator's checkout, in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError

from tempa.core.errors import Problem
from tempa.core.limits import DEFAULT_LIMITS
from tempa.engines.splat.about.engine import IMAGE, SplatEngine
from tempa.engines.splat.about.pictures import PictureFields, told
from tempa.engines.splat.triposplat import fitness
from tempa.engines.splat.triposplat.options import Options
from tempa.jobs.ports import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tempa.core.errors import TempaError
    from tempa.core.fields import Fields
    from tempa.core.limits import Limits
    from tempa.jobs.ports import Takes

REVISION = 1  # raise it whenever the same work may give other bytes
COUNT_MAX = 262_144  # more add no detail, its makers say, and cost time and memory in proportion
COUNTS_MAX = 4
LICENCES = (
    "TripoSplat, code and weights: MIT",
    "DINOv3 ViT-H+/16, weights of the image encoder: DINOv3 License (Meta), which restricts some uses",
    "FLUX.2 VAE, weights of the second encoder: Apache-2.0",
    "BiRefNet, weights of the background's removal: MIT",
)


@cache
def parameters(limits: Limits) -> type[Fields]:
    """The model of the parameters; one for each set of limits."""
    most = min(COUNT_MAX, limits.num_gaussians_max)
    count = Annotated[int, Field(ge=limits.num_gaussians_min, le=most)]

    class TripoSplatParameters(PictureFields):
        """How the picture is read and what is made of it."""

        num_gaussians: count | Annotated[list[count], Field(min_length=1, max_length=COUNTS_MAX)] = Field(
            most,
            description="How many; a list gives several densities of the same object at little more cost. "
            "Rounded to a multiple of 32; the model was trained for 32,768 to 262,144.",
        )
        seed: int = Field(42, ge=0, le=2**53 - 1, description="The same seed gives the same bytes.")
        steps: int = Field(20, ge=1, le=50, description="Of the sampler; time goes by them, 10 to 20 do.")
        guidance_scale: float = Field(
            3.0, ge=0, le=10, description="How closely to keep to the picture; 1 or less halves the time."
        )
        shift: float = Field(3.0, ge=0.1, le=10, description="More than 1 spends more steps on the outlines.")
        erode_radius: int = Field(1, ge=0, le=8, description="Pixels of 1,024 to take off the object's edge.")

    return TripoSplatParameters


@dataclass(frozen=True, kw_only=True)
class TripoSplat(SplatEngine):
    """The model TripoSplat. `python` has torch, and `options` say where its checkout is.

    Raises:
        ValueError: an option is none, or has a value that it cannot have.
    """

    timeout_seconds: float = 1800.0
    memory_bytes: int = 24 << 30  # without a GPU all five networks in float32 are 7 GB, and work needs more
    lane: str = "gpu"
    life_cycle: Literal["fork", "resident"] = "resident"
    licences: tuple[str, ...] = LICENCES
    python: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    name: ClassVar[str] = "triposplat"
    model: ClassVar[str] = "triposplat-v1"
    module: ClassVar[str] = "tempa.engines.splat.triposplat.runner"
    takes: ClassVar[tuple[Takes, ...]] = (IMAGE,)

    def __post_init__(self) -> None:
        """Options that cannot be meant are told before a server starts with them."""
        _ = self.read_options

    @cached_property
    def read_options(self) -> Options:
        """The options, checked."""
        try:
            return Options.model_validate(dict(self.options))
        except ValidationError as error:
            raise ValueError(told(error)) from None

    @property
    def version(self) -> str:  # type: ignore[override]  # other pins are another model
        """Of the model, the adapter, the device and the files that are pinned."""
        return f"triposplat-v1+{REVISION}+{self.read_options.device}.{self.read_options.digest[:12]}"

    def unfit(self) -> TempaError | None:
        """Why it cannot run here: no checkout, another file than the pinned, no torch, no device."""
        return fitness.unfit(self.read_options, self.python)

    def parameters(self, limits: Limits) -> type[Fields]:
        """The model of its parameters."""
        return parameters(limits)

    def rules(self, values: Mapping[str, Any], limits: Limits) -> list[Problem]:
        """The same density twice would be the same file twice."""
        del limits
        counts = values.get("num_gaussians")
        if isinstance(counts, list) and len(set(counts)) < len(counts):
            return [Problem("/parameters/num_gaussians", "Each number may stand there once.")]
        return []

    def read(self, body: Mapping[str, Any], limits: Limits = DEFAULT_LIMITS) -> Reading:
        """As of all engines; the numbers of Gaussians become a list, the most first."""
        reading = super().read(body, limits)
        if reading.work is None:
            return reading
        values = dict(reading.work["parameters"])
        counts = values["num_gaussians"]
        values["num_gaussians"] = sorted(counts if isinstance(counts, list) else [counts], reverse=True)
        return Reading({**reading.work, "parameters": values})

    def describe(self, limits: Limits = DEFAULT_LIMITS) -> Mapping[str, Any]:
        """Its entry in `GET /v1/engines`: on which device it runs, besides what all say."""
        return {**super().describe(limits), "device": self.read_options.device}
