"""Reading and writing Gaussians as files: the two functions the rest of the family uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.formats import (
    compressed_ply,
    glb,
    glb_reading,
    ksplat,
    ply,
    ply_header,
    sog,
    sog_reading,
    splat,
    spz,
)
from tempa.engines.splat.formats.source import malformed, mapped
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.formats.ply_header import Element
    from tempa.engines.splat.gaussians import Gaussians

_WRITERS: Mapping[str, Callable[[Gaussians, Path], None]] = {
    "ply": ply.write,
    "compressed_ply": compressed_ply.write,
    "splat": splat.write,
    "ksplat": ksplat.write,
    "spz": spz.write,
    "sog": sog.write,
    "glb": glb.write,
}
_PLY_READERS: Mapping[str, Callable[[NDArray[np.uint8], Sequence[Element], int], Gaussians]] = {
    "ply": ply.read,
    "compressed_ply": compressed_ply.read,
}
_READERS: Mapping[str, Callable[[NDArray[np.uint8]], Gaussians]] = {
    "splat": splat.read,
    "ksplat": ksplat.read,
    "spz": spz.read,
    "sog": sog_reading.read,
    "glb": glb_reading.read,
}


def write(name: str, gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians (of the family's frame) to a file, in a format of `FORMATS`.

    The same Gaussians give the same bytes. The file is not flushed to the disk.

    Raises:
        TempaError: EXPORT_FAILED: there are none, or more than the format holds, or not all is finite,
            or the format cannot hold a value.
        OSError: the disk is full or broken.
    """
    limit = FORMATS[name].count_max
    if not 0 < len(gaussians) <= limit:
        raise TempaError(
            "EXPORT_FAILED",
            f"{len(gaussians)} Gaussians cannot be written to {FORMATS[name].file_name}.",
            detail={"count": len(gaussians), "limit": limit},
        )
    for array in ARRAYS:
        if not np.isfinite(getattr(gaussians, array)).all():
            raise TempaError(
                "EXPORT_FAILED", "Not every value is finite.", detail={"values": array, "format": name}
            )
    _WRITERS[name](gaussians, path)


def read(path: Path, name: str | None = None) -> Gaussians:
    """Read Gaussians into the family's frame; without a name, the format is known by the content.

    Values that are not finite are left as they are. Memory: the arrays themselves and about as much
    again; nothing is taken that the file's own size does not account for.

    Raises:
        TempaError: IMPORT_FAILED, whatever is wrong with the file; what and where is in its detail.
    """
    data = mapped(path)
    found = recognized(data)
    if found is None or name not in (None, found):
        raise malformed(
            "it is not of a format that is read", expected=name, begins_with=data[:8].tobytes().hex()
        )
    with np.errstate(all="ignore"):  # what is not finite is data here, not a slip of ours
        if found in _PLY_READERS:
            return _PLY_READERS[found](data, *ply_header.parse(data))
        return _READERS[found](data)


def recognized(data: NDArray[np.uint8]) -> str | None:
    """The format of these bytes; None: of none."""
    start = data[:4].tobytes()
    if start[:3] == ply_header.MAGIC:
        return "compressed_ply" if compressed_ply.matches(ply_header.parse(data)[0]) else "ply"
    if start == glb_reading.MAGIC:
        return "glb"
    if start == sog.MAGIC:
        return "sog"
    if spz.matches(data):
        return "spz"
    if ksplat.matches(data):
        return "ksplat"
    return "splat" if splat.resembles(data) else None
