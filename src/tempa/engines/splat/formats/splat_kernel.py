"""The records of .splat, filled in one pass.

Compiled, because a .splat is little more than a copy: NumPy takes 9 ns a Gaussian for it, the kernel's
own writing 7, this loop 2. It is compiled (or taken from the cache) as the module is imported, so
that no job waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from numba import types

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SH_C0 = 0.28209479177387814


def _given(dimensions: int) -> types.Array:
    """An array that may be read-only, as one that lies over a file is."""
    return types.Array(types.float32, dimensions, "C", readonly=True)


_SIGNATURE = types.void(
    types.Array(types.float32, 2, "C"),
    types.Array(types.uint8, 2, "C"),
    _given(2), _given(2), _given(2), _given(1), _given(3),
    types.intp,
)  # fmt: skip


def _byte(value: Any) -> Any:
    """Rounded and clipped."""
    return numba.uint8(min(max(value + numba.float32(0.5), numba.float32(0.0)), numba.float32(255.0)))


def _fill(
    numbers: NDArray[Any],
    octets: NDArray[Any],
    positions: NDArray[Any],
    scales: NDArray[Any],
    rotations: NDArray[Any],
    opacities: NDArray[Any],
    harmonics: NDArray[Any],
    first: int,
) -> None:
    """Records as float32 (m, 8), the same memory as bytes (m, 32): from Gaussian `first` on, in RDF."""
    for row in range(len(numbers)):
        at = first + row
        numbers[row, 0] = positions[at, 0]
        numbers[row, 1] = -positions[at, 1]
        numbers[row, 2] = -positions[at, 2]
        for axis in range(3):
            numbers[row, 3 + axis] = scales[at, axis]
            color = harmonics[at, 0, axis] * numba.float32(_SH_C0) + numba.float32(0.5)
            octets[row, 24 + axis] = _byte(color * numba.float32(255.0))
        octets[row, 27] = _byte(opacities[at] * numba.float32(255.0))
        for part in range(4):
            value = rotations[at, part] if part < 2 else -rotations[at, part]
            octets[row, 28 + part] = _byte(value * numba.float32(128.0) + numba.float32(128.0))


_byte = numba.njit(nogil=True, inline="always")(_byte)
try:
    fill = numba.njit(_SIGNATURE, cache=True, nogil=True)(_fill)
except RuntimeError:  # no folder for the cache can be written: compile in every zygote anew
    fill = numba.njit(_SIGNATURE, nogil=True)(_fill)
