"""PlayCanvas' compressed .ply: blocks of 256 Gaussians, each value in few bits over its block's range.

Elements: `chunk` (18 float32: least and most of position, logarithm of scale, colour), `vertex` (four
uint32: position 11-10-11, rotation 2-10-10-10, scale 11-10-11, colour and opacity 8-8-8-8), and `sh`
(bytes over -4 to 4) from degree 1 on. Files of before 2024 have 12 values a chunk; their colours are
over 0 to 1. Layout: PlayCanvas' user manual, "compressed PLY".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.formats import ply_header
from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.order import morton
from tempa.engines.splat.formats.packing import (
    SMALLEST_THREE_MAX,
    coefficients_of,
    from_smallest_three,
    harmonics_of,
    smallest_three,
)
from tempa.engines.splat.formats.source import counted, linear_scales, malformed, records
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.formats.ply_header import Element

_BLOCK = 256
_AXES = ("x", "y", "z")
_CHUNK = [
    f"{end}_{name}"
    for names in (_AXES, [f"scale_{axis}" for axis in _AXES], ("r", "g", "b"))
    for end in ("min", "max")
    for name in names
]
_VERTEX = ["packed_position", "packed_rotation", "packed_scale", "packed_color"]
_BITS_11_10_11 = (11, 10, 11)
_LOG_SCALE_MAX = 20.0
_HARMONICS_MAX = 4.0


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame, along a Morton curve: that makes the blocks small."""
    ordered = turned(gaussians.take(morton(gaussians.positions)))
    rest = 3 * (ordered.harmonics.shape[1] - 1)
    blocks = -(-len(ordered) // _BLOCK)
    elements = [
        ("chunk", blocks, [(name, "float") for name in _CHUNK]),
        ("vertex", len(ordered), [(name, "uint") for name in _VERTEX]),
    ]
    if rest:
        elements.append(("sh", len(ordered), [(f"f_rest_{number}", "uchar") for number in range(rest)]))
    with path.open("wb") as file:
        file.write(ply_header.text(elements))
        for array in _packed(ordered):
            file.write(np.ascontiguousarray(array).data)


def _packed(gaussians: Gaussians) -> list[NDArray[np.generic]]:
    logarithms = np.clip(np.log(gaussians.scales), -_LOG_SCALE_MAX, _LOG_SCALE_MAX)
    triples = np.concatenate((gaussians.positions, logarithms, gaussians.colors), axis=1)
    least, most = _ranges(triples)
    span = np.repeat(most - least, _BLOCK, axis=0)[: len(triples)]
    shares = (triples - np.repeat(least, _BLOCK, axis=0)[: len(triples)]) / np.where(span > 0, span, 1)
    vertex = np.empty((len(triples), 4), "<u4")
    vertex[:, 0] = _joined(shares[:, 0:3], _BITS_11_10_11)
    vertex[:, 1] = _packed_rotations(gaussians.rotations)
    vertex[:, 2] = _joined(shares[:, 3:6], _BITS_11_10_11)
    rgba = np.empty((len(triples), 4), np.float32)
    rgba[:, :3], rgba[:, 3] = shares[:, 6:9], gaussians.opacities
    vertex[:, 3] = _joined(rgba, (8, 8, 8, 8))
    chunks = np.stack((least.reshape(-1, 3, 3), most.reshape(-1, 3, 3)), axis=2).reshape(-1, 18)
    return [chunks.astype("<f4"), vertex, _packed_harmonics(gaussians.harmonics)]


def _ranges(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Least and most of each column in each block; the last block is filled up with its last row."""
    short = -len(values) % _BLOCK
    full = np.concatenate((values, np.repeat(values[-1:], short, axis=0)))
    blocks = full.reshape(-1, _BLOCK, values.shape[1])
    return blocks.min(axis=1), blocks.max(axis=1)


def _joined(shares: NDArray[np.floating[Any]], bits: Sequence[int]) -> NDArray[np.uint32]:
    """Values from 0 to 1, each in its bits, the first one topmost."""
    word = np.zeros(len(shares), np.uint32)
    for column, width in enumerate(bits):
        most = (1 << width) - 1
        value = np.rint(np.clip(shares[:, column], 0, 1) * np.float32(most)).astype(np.uint32)
        word = (word << np.uint32(width)) | value
    return word


def _packed_rotations(rotations: NDArray[np.float32]) -> NDArray[np.uint32]:
    largest, others = smallest_three(rotations)
    shares = others * np.float32(0.5 / SMALLEST_THREE_MAX) + np.float32(0.5)
    return (largest.astype(np.uint32) << np.uint32(30)) | _joined(shares, (10, 10, 10))


def _packed_harmonics(harmonics: NDArray[np.float32]) -> NDArray[np.uint8]:
    """256 steps over -4 to 4, each read as its middle; one colour channel after the other."""
    steps = np.floor((harmonics[:, 1:] / np.float32(2 * _HARMONICS_MAX) + np.float32(0.5)) * 256)
    packed: NDArray[np.uint8] = np.clip(steps, 0, 255).astype(np.uint8)
    return packed.transpose(0, 2, 1).reshape(len(harmonics), -1)


def matches(elements: Sequence[Element]) -> bool:
    """Whether a .ply header announces this format."""
    names = {element.name: element.layout.names or () for element in elements}
    return "chunk" in names and "packed_position" in names.get("vertex", ())


def read(data: NDArray[np.uint8], elements: Sequence[Element], offset: int) -> Gaussians:
    """Read what follows a header that `ply_header.parse` has read.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    arrays: dict[str, NDArray[np.void]] = {}
    for element in elements:
        arrays[element.name] = records(data, offset, element.count, element.layout, element.name)
        offset += element.count * element.layout.itemsize
    vertex, chunk = arrays["vertex"], arrays["chunk"]
    count = counted(len(vertex))
    if len(chunk) != -(-count // _BLOCK):
        raise malformed("its blocks are not as many as its vertices need", blocks=len(chunk), vertices=count)
    least, most = _bounds(chunk)
    return turned(_unpacked(vertex, least, most, _read_harmonics(arrays.get("sh"), count)))


def _bounds(chunk: NDArray[np.void]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    names = chunk.dtype.names or ()
    missing = [name for name in _CHUNK[:12] if name not in names]
    if missing:
        raise malformed("its blocks lack bounds", missing_properties=missing)
    ends = np.zeros((len(chunk), 3, 2, 3), np.float32)
    ends[:, 2, 1] = 1.0  # the colours of older files
    flat = ends.reshape(len(chunk), 18)
    for number, name in enumerate(_CHUNK):
        if name in names:
            flat[:, number] = chunk[name]
    return ends[:, :, 0].reshape(-1, 9), ends[:, :, 1].reshape(-1, 9)


def _unpacked(
    vertex: NDArray[np.void],
    least: NDArray[np.float32],
    most: NDArray[np.float32],
    harmonics: NDArray[np.float32],
) -> Gaussians:
    words = [_words(vertex, name) for name in _VERTEX]
    rgba = _shares(words[3], (8, 8, 8, 8))
    shares = np.concatenate(
        (_shares(words[0], _BITS_11_10_11), _shares(words[2], _BITS_11_10_11), rgba[:, :3]), axis=1
    )
    low, high = (np.repeat(ends, _BLOCK, axis=0)[: len(vertex)] for ends in (least, most))
    values = low * (1 - shares) + high * shares
    others = (_shares(words[1], (10, 10, 10)) - np.float32(0.5)) * np.float32(2 * SMALLEST_THREE_MAX)
    return Gaussians(
        np.ascontiguousarray(values[:, 0:3]),
        linear_scales(np.ascontiguousarray(values[:, 3:6])),
        from_smallest_three((words[1] >> np.uint32(30)).astype(np.intp), others),
        np.ascontiguousarray(rgba[:, 3]),
        harmonics_of(coefficients_of(values[:, 6:9]), harmonics),
    )


def _words(vertex: NDArray[np.void], name: str) -> NDArray[np.uint32]:
    names = vertex.dtype.names or ()
    if name not in names or vertex.dtype[name].kind not in "ui" or vertex.dtype[name].itemsize != 4:
        raise malformed("its vertices are not packed as they should be", missing_properties=[name])
    return np.ascontiguousarray(vertex[name]).astype(np.uint32)


def _shares(word: NDArray[np.uint32], bits: Sequence[int]) -> NDArray[np.float32]:
    shares = np.empty((len(word), len(bits)), np.float32)
    shift = 0
    for column in reversed(range(len(bits))):
        most = (1 << bits[column]) - 1
        shares[:, column] = ((word >> np.uint32(shift)) & np.uint32(most)) / np.float32(most)
        shift += bits[column]
    return shares


def _read_harmonics(sh: NDArray[np.void] | None, count: int) -> NDArray[np.float32]:
    if sh is None:
        return np.zeros((count, 0, 3), np.float32)
    rest = len(sh.dtype.names or ())
    names = [f"f_rest_{number}" for number in range(rest)]
    if (
        len(sh) != count
        or rest % 3
        or 1 + rest // 3 not in COEFFICIENTS
        or set(sh.dtype.names or ()) != set(names)
    ):
        raise malformed("its spherical harmonics do not fit its vertices", records=len(sh), properties=rest)
    columns = np.stack([sh[name].astype(np.float32) for name in names], axis=1)
    steps = np.where(columns == 0, 0, np.where(columns == 255, 256, columns + np.float32(0.5)))
    values = (steps / 256 - np.float32(0.5)) * np.float32(2 * _HARMONICS_MAX)
    return np.ascontiguousarray(values.reshape(count, 3, rest // 3).transpose(0, 2, 1), np.float32)
