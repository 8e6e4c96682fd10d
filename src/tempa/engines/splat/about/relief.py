"""What the engine `relief-splat` is. How it runs is `tempa.engines.splat.relief_splat`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from tempa.engines.splat.about.engine import DEPTH, IMAGE
from tempa.engines.splat.about.pictures import PictureEngine, PictureFields

if TYPE_CHECKING:
    from tempa.core.fields import Fields
    from tempa.core.limits import Limits
    from tempa.jobs.ports import Takes

REVISION = 1  # raise it whenever the same work may give other bytes


@cache
def parameters(limits: Limits) -> type[Fields]:
    """The model of the parameters; one for each set of limits."""
    least, most = limits.num_gaussians_min, limits.num_gaussians_max

    class ReliefSplatParameters(PictureFields):
        """How the picture is read and what is made of it."""

        num_gaussians: int = Field(
            max(least, min(131_072, most)),
            ge=least,
            le=most,
            description="The budget; flat areas need fewer, and the result has nine tenths of it at least.",
        )
        seed: int = Field(
            0, ge=0, le=2**53 - 1, description="Changes nothing: nothing here is thrown dice for."
        )
        thickness: float = Field(
            1.0, ge=0, le=2, description="Multiplies the inflated depth; 0: a flat card."
        )
        profile: Literal["auto", "rounded", "flat"] = Field(
            "auto", description="Of what is inflated; auto: by the outline."
        )
        field_of_view: float = Field(
            20.0, ge=5, le=90, description="Of the camera that took it, degrees along the longer side."
        )
        depth_scale: float = Field(
            0.5, ge=0, le=0.9, description="With a depth: how deep its range is, in sides of the subject."
        )

    return ReliefSplatParameters


@dataclass(frozen=True, kw_only=True)
class ReliefSplat(PictureEngine):
    """A picture as a relief, its unseen side mirrored. Classical: no weights, the same bytes each time."""

    name: ClassVar[str] = "relief-splat"
    version: ClassVar[str] = f"{REVISION}"
    model: ClassVar[str] = "relief-splat"
    module: ClassVar[str] = "tempa.engines.splat.relief_splat"
    takes: ClassVar[tuple[Takes, ...]] = (IMAGE, DEPTH)

    def parameters(self, limits: Limits) -> type[Fields]:
        """The model of its parameters."""
        return parameters(limits)
