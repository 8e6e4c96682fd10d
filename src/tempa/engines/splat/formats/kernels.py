"""The records of .splat and .ply, filled in one pass.

Compiled, because these files are little more than a copy. A Gaussian of a .splat takes NumPy 9 ns and the
disk's cache 7; this loop takes 2. They are compiled (or taken from the cache) as the module is
imported, so that no job waits for it.
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


_SPLAT = types.void(
    types.Array(types.float32, 2, "C"), types.Array(types.uint8, 2, "C"),
    _given(2), _given(2), _given(2), _given(1), _given(3), types.intp,
)  # fmt: skip
_PLY = types.void(
    types.Array(types.float32, 2, "C"),
    _given(2), _given(3), _given(1), _given(2), _given(2), _given(1), types.intp,
)  # fmt: skip


def _byte(value: Any) -> Any:
    """Rounded and clipped."""
    return numba.uint8(min(max(value + numba.float32(0.5), numba.float32(0.0)), numba.float32(255.0)))


def _fill_splat(
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


def _fill_ply(
    numbers: NDArray[Any],
    positions: NDArray[Any],
    harmonics: NDArray[Any],
    logits: NDArray[Any],
    logarithms: NDArray[Any],
    rotations: NDArray[Any],
    signs: NDArray[Any],
    first: int,
) -> None:
    """Records as float32 (m, width), from Gaussian `first` on, in RDF; normals are left as they are.

    `logits` and `logarithms` (of scales) are those of the records alone, `signs` of the harmonics.
    """
    rest = harmonics.shape[1] - 1
    for row in range(len(numbers)):
        at = first + row
        numbers[row, 0] = positions[at, 0]
        numbers[row, 1] = -positions[at, 1]
        numbers[row, 2] = -positions[at, 2]
        for channel in range(3):
            numbers[row, 6 + channel] = harmonics[at, 0, channel]
            for number in range(rest):
                value = harmonics[at, 1 + number, channel] * signs[1 + number]
                numbers[row, 9 + channel * rest + number] = value
        last = 9 + 3 * rest
        numbers[row, last] = logits[row]
        for axis in range(3):
            numbers[row, last + 1 + axis] = logarithms[row, axis]
        for part in range(4):
            value = rotations[at, part]
            numbers[row, last + 4 + part] = value if part < 2 else -value


def _compiled(signature: Any, function: Any) -> Any:
    try:
        return numba.njit(signature, cache=True, nogil=True)(function)
    except RuntimeError:  # no folder for the cache can be written: compile in every zygote anew
        return numba.njit(signature, nogil=True)(function)


_byte = numba.njit(nogil=True, inline="always")(_byte)
fill_splat = _compiled(_SPLAT, _fill_splat)
fill_ply = _compiled(_PLY, _fill_ply)
