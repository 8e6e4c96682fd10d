"""What the engine `mesh-splat` is. How it runs is `tempa.engines.splat.mesh_splat`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from tempa.core.fields import Fields
from tempa.engines.splat.about.engine import MESH, SplatEngine

if TYPE_CHECKING:
    from tempa.core.limits import Limits
    from tempa.jobs.ports import Takes

REVISION = 1  # raise it whenever the same work may give other bytes
_Channel = Annotated[float, Field(ge=0, le=1)]


@cache
def parameters(limits: Limits) -> type[Fields]:
    """The model of the parameters; one for each set of limits."""
    least, most = limits.num_gaussians_min, limits.num_gaussians_max

    class MeshSplatParameters(Fields):
        """How the mesh is covered."""

        num_gaussians: int = Field(max(least, min(131_072, most)), ge=least, le=most, description="How many.")
        seed: int = Field(0, ge=0, le=2**53 - 1, description="Of where they lie.")
        color: Annotated[list[_Channel], Field(min_length=3, max_length=3)] = Field(
            default_factory=lambda: [0.72, 0.74, 0.78], description="sRGB, for what has no colour of its own."
        )
        shading: Literal["auto", "always", "never"] = Field(
            "auto", description="Light on the surface; auto: where all is of one colour."
        )
        up_axis: Literal["auto", "y", "z"] = Field(
            "auto", description="Which way is up in the file; auto: z in an STL, y in the others."
        )

    return MeshSplatParameters


@dataclass(frozen=True, kw_only=True)
class MeshSplat(SplatEngine):
    """A mesh covered with Gaussians: GLB, STL, OBJ, PLY, or a CAD job's result."""

    name: ClassVar[str] = "mesh-splat"
    version: ClassVar[str] = f"{REVISION}"
    model: ClassVar[str] = "mesh-splat"
    module: ClassVar[str] = "tempa.engines.splat.mesh_splat"
    takes: ClassVar[tuple[Takes, ...]] = (MESH,)

    def parameters(self, limits: Limits) -> type[Fields]:
        """The model of its parameters."""
        return parameters(limits)
