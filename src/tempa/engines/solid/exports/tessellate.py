"""From a tube to the mesh that files hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.core.errors import TempaError
from tempa.engines.solid.exports.mesh import weld
from tempa.engines.solid.facets.flanged_tube import Facets

if TYPE_CHECKING:
    from tempa.engines.solid.exports.mesh import Mesh
    from tempa.engines.solid.reference import Reference
    from tempa.engines.solid.templates.tube import Tube

# Of this many, meshing and all three files take 55 s and 2.1 GB (scaled from 82 s for 2.94 million, 2 cores).
TRIANGLES_MAX = 2_000_000
_ANGULAR_MAX = 90.0
_FLOAT_ROUNDING = 2.0**-23


def tessellate(tube: Tube, *, linear: float, angular: float, reference: Reference) -> Mesh:
    """A watertight mesh within `linear` mm of the surface, with `angular` degrees at most between chords.

    Raises:
        TempaError: TESSELLATION_FAILED: too many triangles, which is known before the first is made,
            or details that 32-bit coordinates cannot tell apart.
    """
    facets = Facets(tube, linear=linear, angular=angular)
    if facets.count > TRIANGLES_MAX:
        raise _too_fine(tube, linear, angular, facets.count)
    mesh = weld(facets.triangulations())
    _require_sound(mesh, tube, linear, reference)
    return mesh


def _too_fine(tube: Tube, linear: float, angular: float, count: int) -> TempaError:
    """Names a tolerance that would do. Sagittas go with the square of their angles."""
    wide, turn = linear, angular
    while Facets(tube, linear=wide, angular=turn).count > TRIANGLES_MAX:
        wide, turn = wide * 2.0, min(turn * 2.0**0.5, _ANGULAR_MAX)
    message = f"About {count:,} triangles would be needed, more than {TRIANGLES_MAX:,}."
    hint = f"Ask for tolerance.linear {wide:.6g} (mm) and tolerance.angular {turn:.6g} (degrees)."
    detail = {"triangles": count, "limit": TRIANGLES_MAX, "linear": wide, "angular": turn}
    return TempaError("TESSELLATION_FAILED", message, hint=hint, detail=detail)


def _require_sound(mesh: Mesh, tube: Tube, linear: float, reference: Reference) -> None:
    """Refuse a mesh that leaks, or whose volume is not the tube's.

    A mesh that keeps within `linear` of a surface cannot miss more than that times its area; 32 bits
    put its vertices off by another rounding.
    """
    spacing = _FLOAT_ROUNDING * reference.extent
    if not mesh.watertight:
        message = "Meshes have 32-bit coordinates, which cannot tell the part's finest details apart."
        hint = f"Ask for step or brep: details of less than about {8.0 * spacing:.2g} mm get lost here."
        detail = {"spacing": spacing, "wall": tube.outer_radius - tube.inner_radius}
        raise TempaError("TESSELLATION_FAILED", message, hint=hint, detail=detail)
    if not abs(mesh.volume - reference.volume) <= (linear + spacing) * reference.area:
        detail = {"volume": reference.volume, "mesh_volume": mesh.volume}
        raise TempaError("TESSELLATION_FAILED", "The mesh does not have the part's volume.", detail=detail)
