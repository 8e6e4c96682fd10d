"""Strips of triangles between two rows of points."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Point = TypeVar("Point")


def strip(
    right: Sequence[Point], left: Sequence[Point], along: Callable[[Point], float]
) -> Iterator[tuple[Point, Point, Point]]:
    """Fill between two rows of points that both rise in `along`, counter-clockwise.

    `left` lies to the left of one who walks up `right`. Rows may meet in their first or last point,
    and a row may be one point. Of two ways on, the one whose points lie closer in `along` is taken.
    """
    i = j = 0
    while i + 1 < len(right) or j + 1 < len(left):
        if j + 1 == len(left) or (i + 1 < len(right) and _closer(right, i, left, j, along)):
            corners = (right[i], right[i + 1], left[j])
            i += 1
        else:
            corners = (right[i], left[j + 1], left[j])
            j += 1
        if len(set(corners)) == 3:
            yield corners


def _closer(
    right: Sequence[Point], i: int, left: Sequence[Point], j: int, along: Callable[[Point], float]
) -> bool:
    on_right = abs(along(right[i + 1]) - along(left[j]))
    return on_right <= abs(along(left[j + 1]) - along(right[i]))
