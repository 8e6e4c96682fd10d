"""What every file must pass before it counts as made: it is read again, and holds what was written.

Twice: by this family's own reader, and by GaussForge, another implementation, for all it can read (all
but .glb). Both have to agree with the Gaussians within the bounds that the table states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.formats import files, forge
from tempa.engines.splat.formats.order import morton
from tempa.engines.splat.formats.palette import VECTORS_MAX
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import COEFFICIENTS, SH_C0, Gaussians

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.formats.table import SplatFormat

# GaussForge 0.6.0 takes a .ksplat's harmonics channel by channel over all degrees; the format has
# them degree by degree, which is the same up to degree 1.
_FORGE_KSPLAT_DEGREE_MAX = 1
_SLACK = 2e-6  # of the float32 that a value passes through as a logarithm or logit


def verify(path: Path, name: str, gaussians: Gaussians) -> None:
    """The file holds these Gaussians (of the family's frame), as nearly as its format can.

    Raises:
        TempaError: EXPORT_FAILED; detail tells what differs, and for which reader.
    """
    expected = as_stored(FORMATS[name], gaussians)
    _compare(path, FORMATS[name], expected, "own")
    if name in forge.NAMES:
        _compare(path, FORMATS[name], expected, "gaussforge")


def as_stored(form: SplatFormat, gaussians: Gaussians) -> Gaussians:
    """What a perfect writer of the format would keep: its order, its degrees, its ranges."""
    accuracy = form.accuracy
    if form.reorders:
        gaussians = gaussians.take(morton(gaussians.positions))
    kept = gaussians.harmonics[:, : COEFFICIENTS[form.degree_max]]
    least, most = ((end - 0.5) / SH_C0 for end in accuracy.color_range)
    harmonics = np.clip(kept, *accuracy.harmonics_range)
    harmonics[:, 0] = np.clip(kept[:, 0], least, most)
    return Gaussians(
        gaussians.positions,
        np.clip(gaussians.scales, *accuracy.scale_range),
        gaussians.rotations,
        gaussians.opacities,
        np.ascontiguousarray(harmonics, np.float32),
    )


def _compare(path: Path, form: SplatFormat, expected: Gaussians, reader: str) -> None:
    try:
        found = files.read(path, form.name) if reader == "own" else forge.read(path.read_bytes(), form.name)
    except TempaError as broken:
        raise _different(path, "structure", reader, reason=broken.message) from broken
    if len(found) != len(expected):
        raise _different(path, "count", reader, wrote=len(expected), found=len(found))
    if found.degree != expected.degree:
        raise _different(path, "degree", reader, wrote=expected.degree, found=found.degree)
    for column, (error, bound) in _errors(form, expected, found, reader).items():
        if not error <= bound:  # NaN is not
            raise _different(path, column, reader, error=error, bound=bound)


def _errors(
    form: SplatFormat, expected: Gaussians, found: Gaussians, reader: str
) -> dict[str, tuple[float, float]]:
    """The largest error of each column, beside its bound."""
    accuracy = form.accuracy
    logarithms = np.log(expected.scales)
    ratio = np.log(found.scales) - logarithms
    errors = {
        "positions": (_most(found.positions - expected.positions), _position_bound(form, expected)),
        "scales": (_most(ratio), accuracy.scale * 1.02 + accuracy.of_range * _range(logarithms) + _SLACK),
        "rotations": (_angle(found.rotations, expected.rotations), accuracy.rotation_degrees),
        "opacities": (_most(found.opacities - expected.opacities), accuracy.opacity + _SLACK),
        "colors": (
            _most(found.colors - expected.colors),
            accuracy.color + accuracy.of_range * _range(expected.colors) + _SLACK,
        ),
    }
    if _comparable(form, expected, reader):
        rest, bound = expected.harmonics[:, 1:], (accuracy.harmonics or 0.0) + _SLACK
        error = _most(found.harmonics[:, 1:] - rest)
        errors["harmonics"] = (error, bound + accuracy.of_range * _range(rest))
    return errors


def _comparable(form: SplatFormat, expected: Gaussians, reader: str) -> bool:
    if form.name == "ksplat" and reader == "gaussforge":
        return 0 < expected.degree <= _FORGE_KSPLAT_DEGREE_MAX
    return expected.degree > 0 and (form.accuracy.harmonics is not None or len(expected) <= VECTORS_MAX)


def _position_bound(form: SplatFormat, expected: Gaussians) -> float:
    return (form.accuracy.position + 1e-7 * (form.accuracy.position > 0)) * _most(expected.positions)


def _most(values: NDArray[np.float32]) -> float:
    return float(np.abs(values).max(initial=0.0))


def _range(values: NDArray[np.float32]) -> float:
    return float(values.max() - values.min()) if values.size else 0.0


def _angle(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The largest angle (degrees) between orientations; q and -q are the same."""
    apart = np.minimum(np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1))
    return float(np.degrees(4 * np.arcsin(np.minimum(apart.max() / 2, 1))))


def _different(path: Path, what: str, reader: str, **values: Any) -> TempaError:
    return TempaError(
        "EXPORT_FAILED",
        f"{path.name} does not read back the same.",
        detail={"differs": what, "reader": reader, **values},
    )
