"""What every reader stands on: the bytes of a file nobody vouches for, and how to say what is wrong with it.

The rule of all readers: a count is compared with the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.formats.table import COUNT_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike, NDArray

SCALE_LEAST = float(np.finfo(np.float32).tiny)  # a flat Gaussian has a scale of "0": ours are > 0


def malformed(what: str, **detail: Any) -> TempaError:
    """The error that names what is wrong; `detail` says where, and what was found."""
    return TempaError("IMPORT_FAILED", f"The file could not be read: {what}.", detail=detail)


def mapped(path: Path) -> NDArray[np.uint8]:
    """The file's bytes, read as they are touched.

    Raises:
        TempaError: IMPORT_FAILED, it is empty.
    """
    with path.open("rb") as file:
        try:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        except ValueError as error:  # what an empty file answers to being mapped
            raise malformed("it is empty", size_bytes=0) from error


def records(data: NDArray[np.uint8], offset: int, count: int, layout: DTypeLike, what: str) -> NDArray[Any]:
    """`count` records of a layout from `offset` on, as a view.

    Raises:
        TempaError: IMPORT_FAILED, they reach beyond the end.
    """
    need = offset + count * np.dtype(layout).itemsize
    if count < 0 or offset < 0 or need > len(data):
        raise malformed(
            f"{what} reach beyond the end", offset=offset, count=count, needs_bytes=need, size_bytes=len(data)
        )
    return np.frombuffer(data[offset:need].data, layout, count)


def counted(count: int) -> int:
    """A number of Gaussians that may be read.

    Raises:
        TempaError: IMPORT_FAILED, none or too many.
    """
    if count <= 0:
        raise malformed("it holds no Gaussians", count=count)
    if count > COUNT_MAX:
        raise malformed(f"it has more than {COUNT_MAX} Gaussians", count=count, limit=COUNT_MAX)
    return count


def unit(quaternions: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Quaternions of length 1; NaN where there is no direction, which a filter removes later."""
    # In float64: the squares of components as small as 1e-20 vanish in float32.
    wide = quaternions.astype(np.float64)
    length = np.sqrt(np.einsum("nc,nc->n", wide, wide))
    return np.ascontiguousarray(wide / length[:, None], np.float32)


def linear_scales(logarithms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Their exponentials, and no less than the least normal float32."""
    return np.maximum(np.exp(logarithms), np.float32(SCALE_LEAST))


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """1 / (1 + e^-x)."""
    return np.float32(1) / (np.float32(1) + np.exp(-logits))
