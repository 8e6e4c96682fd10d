"""The checks of a request: they turn a job into a test of its part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

BOX_TOLERANCE = 1e-6  # how exactly the part's own box is known, in mm


def require(checks: Mapping[str, Any], measured: Mapping[str, Any]) -> None:
    """Hold what was measured against what was asked for; a check that is null asks for nothing.

    Raises:
        TempaError: CHECK_FAILED; `detail["failed"]` lists every check that does not hold as
            `{"check", "asked", "found"}`.
    """
    failed = list(_failed(checks, measured))
    if failed:
        names = ", ".join(entry["check"] for entry in failed)
        message = f"The part was built, but it does not hold: {names}."
        raise TempaError("CHECK_FAILED", message, detail={"failed": failed})


def _failed(checks: Mapping[str, Any], measured: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, (measurement, holds) in _CHECKS.items():
        asked, found = checks.get(name), measured[measurement]
        if asked is not None and not holds(asked, found):
            yield {"check": name, "asked": asked, "found": found}


def _inside(box: Any, part: Any) -> bool:
    (low, high), (part_low, part_high) = box, part
    return all(a - BOX_TOLERANCE <= b for a, b in zip(low, part_low, strict=True)) and all(
        a + BOX_TOLERANCE >= b for a, b in zip(high, part_high, strict=True)
    )


# What each check looks at, and when it holds.
_CHECKS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "solids": ("solids", lambda asked, found: bool(found == asked)),
    "volume_min": ("volume", lambda asked, found: bool(found >= asked)),
    "volume_max": ("volume", lambda asked, found: bool(found <= asked)),
    "bounding_box": ("bounding_box", _inside),
    "watertight": ("watertight", lambda asked, found: found or not asked),
}
