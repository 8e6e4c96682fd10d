"""B-splines of degree 7 and continuity C3 through points with three derivatives, in closed form.

Every segment is the two-point Hermite interpolant, so its error is `h**8 / (8! * 256)` times
the eighth derivative, is largest in the middle, and can be measured there. No linear system is
solved; poles are blossoms (Ramshaw 1987): of the 7 knots a pole depends on, 4 are the same
breakpoint, so that the derivatives there alone decide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from OCP.collections import Array1_double, Array1_gp_Pnt, Array1_gp_Pnt2d, Array1_int
from OCP.Geom import Geom_BSplineCurve
from OCP.Geom2d import Geom2d_BSplineCurve
from OCP.gp import gp_Pnt, gp_Pnt2d

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tempa.engines.solid.brep.jets import Jet

DEGREE = 7
SHARED_KNOTS = 4
SPLITS_MAX = 60

Node: TypeAlias = "tuple[float, tuple[Jet, ...]]"


def nodes(
    function: Callable[[float], tuple[Jet, ...]], first: float, last: float, tolerances: Sequence[float]
) -> list[Node]:
    """Breakpoints with jets, as close together as needed to follow `function` within `tolerances`.

    `tolerances` holds one bound a component, in that component's own unit.
    """
    found = [(first, function(first))]
    pending = [(last, function(last))]
    while pending:
        left, right = found[-1], pending[-1]
        middle = (left[0] + right[0]) / 2.0
        exact = function(middle)
        if len(pending) < SPLITS_MAX and _misses(left, right, exact, tolerances):
            pending.append((middle, exact))
        else:
            found.append(pending.pop())
    return found


def _misses(left: Node, right: Node, exact: tuple[Jet, ...], tolerances: Sequence[float]) -> bool:
    h = right[0] - left[0]
    pairs = zip(left[1], right[1], exact, tolerances, strict=True)
    return any(abs(_middle(a, b, h) - c.value) > bound for a, b, c, bound in pairs)


def _middle(a: Jet, b: Jet, h: float) -> float:
    """Value of the Hermite interpolant half way between two nodes that lie `h` apart."""
    p, q = a.c, b.c
    return (
        (p[0] + q[0]) / 2.0
        + (p[1] - q[1]) * h * 11.0 / 64.0
        + (p[2] + q[2]) * h * h * 3.0 / 64.0
        + (p[3] - q[3]) * h**3 / 128.0
    )


def _poles(points: Sequence[Node], component: int) -> list[float]:
    made: list[float] = []
    for index, (t, jets) in enumerate(points):
        before = points[max(index - 1, 0)][0] - t
        after = points[min(index + 1, len(points) - 1)][0] - t
        made += [_blossom(jets[component], before, after, count) for count in range(SHARED_KNOTS)]
    return made


def _blossom(jet: Jet, before: float, after: float, count: int) -> float:
    """Blossom at (t, t, t, t) and three more knots: `count` times the next, else the previous."""
    x, y, z = (*(before,) * (3 - count), *(after,) * count)
    return (
        jet.c[0]
        + jet.c[1] * (x + y + z) / 7.0
        + jet.c[2] * (x * y + y * z + z * x) / 21.0
        + jet.c[3] * x * y * z / 35.0
    )


def space_curve(points: Sequence[Node], x: int, y: int, z: int) -> Geom_BSplineCurve:
    """The 3D curve whose coordinates are the components `x`, `y`, `z` of the nodes."""
    columns = zip(_poles(points, x), _poles(points, y), _poles(points, z), strict=True)
    poles = [gp_Pnt(*pole) for pole in columns]
    array = Array1_gp_Pnt(1, len(poles))
    for index, pole in enumerate(poles, start=1):
        array.SetValue(index, pole)
    return Geom_BSplineCurve(array, *_knots(points), DEGREE)


def plane_curve(points: Sequence[Node], u: int, v: int) -> Geom2d_BSplineCurve:
    """The curve in a surface's (u, v) whose coordinates are two components of the nodes."""
    poles = [gp_Pnt2d(*pole) for pole in zip(_poles(points, u), _poles(points, v), strict=True)]
    array = Array1_gp_Pnt2d(1, len(poles))
    for index, pole in enumerate(poles, start=1):
        array.SetValue(index, pole)
    return Geom2d_BSplineCurve(array, *_knots(points), DEGREE)


def _knots(points: Sequence[Node]) -> tuple[Array1_double, Array1_int]:
    knots, multiplicities = Array1_double(1, len(points)), Array1_int(1, len(points))
    for index, (t, _) in enumerate(points, start=1):
        knots.SetValue(index, t)
        multiplicities.SetValue(index, DEGREE + 1 if index in (1, len(points)) else SHARED_KNOTS)
    return knots, multiplicities
