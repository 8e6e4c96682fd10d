"""The .ply of "3D Gaussian Splatting" (Kerbl et al. 2023): float32 properties of a `vertex` element.

Written as the paper's reference does, normals (all 0) included: its own viewer and others go by fixed
offsets. Opacities are logits, scales logarithms, `f_rest` one colour channel after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.formats import kernels, ply_header, rows
from tempa.engines.splat.formats.axes import HARMONIC_SIGNS, turned
from tempa.engines.splat.formats.packing import harmonics_of
from tempa.engines.splat.formats.source import counted, linear_scales, malformed, records, sigmoid, unit
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.formats.ply_header import Element

_OPACITY_LEAST = np.float32(2.0**-24)  # 1 less this is the float32 before 1
_POSITION = ("x", "y", "z")
_BASE = ("f_dc_0", "f_dc_1", "f_dc_2")
_SCALE = ("scale_0", "scale_1", "scale_2")
_ROTATION = ("rot_0", "rot_1", "rot_2", "rot_3")
_NEEDED = (*_POSITION, *_BASE, "opacity", *_SCALE, *_ROTATION)


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame."""
    names = _names(gaussians.harmonics.shape[1])
    head = ply_header.text([("vertex", len(gaussians), [(name, "float") for name in names])])

    def fill(block: NDArray[np.float32], which: slice) -> None:
        opacities = np.clip(gaussians.opacities[which], _OPACITY_LEAST, 1 - _OPACITY_LEAST)
        kernels.fill_ply(
            block,
            gaussians.positions,
            gaussians.harmonics,
            np.log(opacities / (1 - opacities)),
            np.log(gaussians.scales[which]),
            gaussians.rotations,
            HARMONIC_SIGNS,
            which.start,
        )

    rows.write(path, head, len(gaussians), len(names), fill)


def _names(coefficients: int) -> list[str]:
    rest = [f"f_rest_{number}" for number in range(3 * (coefficients - 1))]
    return [*_POSITION, "nx", "ny", "nz", *_BASE, *rest, "opacity", *_SCALE, *_ROTATION]


def read(data: NDArray[np.uint8], elements: Sequence[Element], offset: int) -> Gaussians:
    """Read what follows a header that `ply_header.parse` has read.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    vertex = _vertex(elements)
    for element in elements:
        if element is vertex:
            break
        offset += element.count * element.layout.itemsize
    found = records(data, offset, counted(vertex.count), vertex.layout, "the vertices")
    return turned(
        Gaussians(
            _columns(found, _POSITION),
            linear_scales(_columns(found, _SCALE)),
            unit(_columns(found, _ROTATION)),
            np.ascontiguousarray(sigmoid(_columns(found, ("opacity",))[:, 0])),
            _harmonics(found),
        )
    )


def _vertex(elements: Sequence[Element]) -> Element:
    for element in elements:
        if element.name == "vertex":
            missing = [name for name in _NEEDED if name not in (element.layout.names or ())]
            if missing:
                raise malformed("the vertices are no Gaussians", missing_properties=missing)
            return element
    raise malformed("it has no vertices", elements=[element.name for element in elements][:20])


def _harmonics(found: NDArray[Any]) -> NDArray[np.float32]:
    rest = sum(name.startswith("f_rest_") for name in found.dtype.names or ())
    if rest % 3 or 1 + rest // 3 not in COEFFICIENTS:
        raise malformed("its spherical harmonics are of no degree from 0 to 3", f_rest_properties=rest)
    names = [f"f_rest_{number}" for number in range(rest)]
    missing = [name for name in names if name not in (found.dtype.names or ())]
    if missing:
        raise malformed("spherical harmonics are missing", missing_properties=missing)
    base = _columns(found, _BASE)[:, None, :]
    if not rest:
        return np.ascontiguousarray(base)
    by_channel = _columns(found, names).reshape(len(found), 3, rest // 3)
    return harmonics_of(base, by_channel.transpose(0, 2, 1))


def _columns(found: NDArray[Any], names: Sequence[str]) -> NDArray[np.float32]:
    columns = np.empty((len(found), len(names)), np.float32)
    for number, name in enumerate(names):
        columns[:, number] = found[name]
    return columns
