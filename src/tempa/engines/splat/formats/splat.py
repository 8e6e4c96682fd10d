""".splat, as antimatter15's viewer has it: 32 bytes a Gaussian, no header, degree 0 only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.formats import kernels, rows
from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.packing import coefficients_of, from_bytes
from tempa.engines.splat.formats.source import SCALE_LEAST, counted, malformed, records, unit
from tempa.engines.splat.gaussians import Gaussians

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_ROW = np.dtype([("position", "<f4", 3), ("scale", "<f4", 3), ("color", "u1", 4), ("rotation", "u1", 4)])
_EXTREME = 1e6  # a position or scale beyond it is not of this format, whose every 32 bytes look like a record


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame; spherical harmonics above degree 0 are left out."""

    def fill(block: NDArray[np.float32], which: slice) -> None:
        kernels.fill_splat(
            block,
            block.view(np.uint8),
            gaussians.positions,
            gaussians.scales,
            gaussians.rotations,
            gaussians.opacities,
            gaussians.harmonics,
            which.start,
        )

    rows.write(path, b"", len(gaussians), _ROW.itemsize // 4, fill)


def read(data: NDArray[np.uint8]) -> Gaussians:
    """Read a whole file.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    if len(data) % _ROW.itemsize:
        raise malformed("its size is no multiple of 32 bytes", size_bytes=len(data))
    found = records(data, 0, counted(len(data) // _ROW.itemsize), _ROW, "the Gaussians")
    color = from_bytes(found["color"])
    return turned(
        Gaussians(
            np.ascontiguousarray(found["position"], np.float32),
            np.maximum(np.ascontiguousarray(found["scale"], np.float32), np.float32(SCALE_LEAST)),
            unit((found["rotation"].astype(np.float32) - 128) / 128),
            np.ascontiguousarray(color[:, 3]),
            coefficients_of(color[:, :3]),
        )
    )


def resembles(data: NDArray[np.uint8]) -> bool:
    """Whether the first records could be Gaussians: a format without a header has to be guessed."""
    if not len(data) or len(data) % _ROW.itemsize:
        return False
    found = np.frombuffer(data[: _ROW.itemsize * 64].data, _ROW)
    numbers = np.concatenate((found["position"], found["scale"]), axis=1)
    return bool(np.all(np.abs(numbers) < _EXTREME) and np.all(found["scale"] >= 0))
