""".spz of Niantic: bytes and fixed-point numbers, one attribute after the other, under gzip.

Written as version 3, which every reader of today knows (version 4 is zstd, and viewers still lack it).
Read: 1 (float16 positions), 2 (24-bit positions, rotations in three bytes), 3 (rotations as smallest
three, 10 bits each), and 4 through GaussForge. Layout: `load-spz.cc`. Axes are RUB, as the format's own
documentation has it; PlayCanvas' tools and plain converters leave a .ply's RDF in it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.formats import forge, gzipped
from tempa.engines.splat.formats.packing import (
    SMALLEST_THREE_MAX,
    from_bytes,
    from_smallest_three,
    harmonics_of,
    smallest_three,
    to_bytes,
)
from tempa.engines.splat.formats.source import counted, malformed, records, unit
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = 0x5053474E  # "NGSP"
MAGIC_4 = b"NGSP"  # what a file of version 4 begins with: only its attributes are compressed
_HEADER = struct.Struct("<IIIBBBB")
_HEADER_4 = struct.Struct("<IIIBBBBI12x")
_STREAM = np.dtype([("packed", "<u8"), ("content", "<u8")])
_VERSION = 3
_POSITION_BITS = 16  # of the largest coordinate: 24 there are, but what is noise does not compress
_FRACTION_BITS_MAX = 24
_COLOR_SCALE = np.float32(0.15)
_LOG_SCALE_LEAST, _LOG_SCALE_STEPS = np.float32(-10.0), np.float32(16.0)
_ROTATION_STEPS = 511
_STEPS_DEGREE_1, _STEPS_REST = 8, 16  # 5 and 4 bits, as the format's reference writer has them


@dataclass(frozen=True, slots=True)
class _Header:
    version: int
    count: int
    degree: int
    fraction_bits: int

    @property
    def widths(self) -> tuple[int, ...]:
        """Bytes a Gaussian of positions, opacities, colours, scales, rotations and harmonics."""
        return (
            6 if self.version == 1 else 9,
            1,
            3,
            3,
            3 if self.version < 3 else 4,
            3 * (COEFFICIENTS[self.degree] - 1),
        )

    @property
    def size_bytes(self) -> int:
        return _HEADER.size + self.count * sum(self.widths)


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame.

    Raises:
        TempaError: EXPORT_FAILED, a coordinate is too large for 24 bits.
    """
    bits = _fraction_bits(gaussians.positions)
    header = _HEADER.pack(MAGIC, _VERSION, len(gaussians), gaussians.degree, bits, 0, 0)
    content = b"".join((header, *(part.tobytes() for part in _parts(gaussians, bits))))
    with path.open("wb") as file:
        file.writelines(gzipped.compress(content))


def _fraction_bits(positions: NDArray[np.float32]) -> int:
    largest = float(np.abs(positions).max(initial=0.0))
    if largest >= 2.0**23 - 1:
        raise TempaError(
            "EXPORT_FAILED",
            "A coordinate is too large for .spz.",
            detail={"coordinate": largest, "limit": 2.0**23 - 1},
        )
    whole = int(np.ceil(np.log2(largest))) if largest > 0 else 0
    return min(max(_POSITION_BITS - whole, 0), _FRACTION_BITS_MAX)


def _parts(gaussians: Gaussians, fraction_bits: int) -> list[NDArray[np.generic]]:
    fixed = np.rint(gaussians.positions * np.float32(1 << fraction_bits)).astype("<i4")
    base = gaussians.harmonics[:, 0] * _COLOR_SCALE + np.float32(0.5)
    logarithms = np.log(gaussians.scales)
    scales = np.clip(np.rint((logarithms - _LOG_SCALE_LEAST) * _LOG_SCALE_STEPS), 0, 255)
    return [
        fixed.view(np.uint8).reshape(-1, 4)[:, :3],
        to_bytes(gaussians.opacities),
        to_bytes(base),
        scales.astype(np.uint8),
        _packed_rotations(gaussians.rotations),
        _packed_harmonics(gaussians.harmonics[:, 1:]),
    ]


def _packed_rotations(rotations: NDArray[np.float32]) -> NDArray[np.uint32]:
    """Two bits for which component is largest, then sign and nine bits of each other one; x, y, z, w."""
    largest, others = smallest_three(np.roll(rotations, -1, axis=1))
    steps = np.rint(np.abs(others) * np.float32(_ROTATION_STEPS / SMALLEST_THREE_MAX)).astype(np.uint32)
    steps = np.minimum(steps, _ROTATION_STEPS) | (others < 0).astype(np.uint32) << np.uint32(9)
    word = largest.astype(np.uint32)
    for column in range(3):
        word = (word << np.uint32(10)) | steps[:, column]
    return word.astype("<u4")


def _packed_harmonics(rest: NDArray[np.float32]) -> NDArray[np.uint8]:
    width = np.full(rest.shape[1], _STEPS_REST, np.float32)
    width[: COEFFICIENTS[1] - 1] = _STEPS_DEGREE_1
    steps = np.rint((rest * 128 + 128) / width[:, None]) * width[:, None]
    packed: NDArray[np.uint8] = np.clip(steps, 0, 255).astype(np.uint8)
    return packed


def read(data: NDArray[np.uint8]) -> Gaussians:
    """Read a whole file.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    view = data.data
    if view[:4] == MAGIC_4:
        return _read_4(data)
    header = _header(gzipped.beginning(view, _HEADER.size))
    content = gzipped.decompress(view, header.size_bytes)
    return _unpacked(header, np.frombuffer(content, np.uint8, offset=_HEADER.size))


def _read_4(data: NDArray[np.uint8]) -> Gaussians:
    """Version 4: what its header promises is checked here, its zstd streams are left to another reader."""
    head = data[: _HEADER_4.size].tobytes()
    if len(head) < _HEADER_4.size:
        raise malformed("it ends within its header", size_bytes=len(head))
    _, version, count, degree, bits, _, streams, offset = _HEADER_4.unpack(head)
    if version != 4 or degree >= len(COEFFICIENTS) or bits > _FRACTION_BITS_MAX:
        raise malformed("its header is out of bounds", version=version, degree=degree, fractional_bits=bits)
    header = _Header(version, counted(count), degree, bits)
    sizes = [count * width for width in header.widths if width]
    if streams != len(sizes):
        raise malformed("it has another number of streams than its degree needs", streams=streams)
    told = records(data, offset, streams, _STREAM, "its streams' sizes")
    end = offset + told.nbytes
    if told["content"].tolist() != sizes or end + sum(told["packed"].tolist()) > len(data):
        raise malformed("its streams are not as large as its count needs", count=count)
    return forge.read(data.tobytes(), "spz")


def matches(data: NDArray[np.uint8]) -> bool:
    """Whether it begins like one: any gzip file with the magic number in it, or version 4."""
    start = data[:2].tobytes()
    if data[:4].tobytes() == MAGIC_4:
        return True
    if start != gzipped.MAGIC:
        return False
    try:
        return gzipped.beginning(data.data, 4) == MAGIC_4
    except TempaError:
        return False


def _header(head: bytes) -> _Header:
    if len(head) < _HEADER.size:
        raise malformed("it ends within its header", size_bytes=len(head))
    magic, version, count, degree, bits, _, _ = _HEADER.unpack(head)
    if magic != MAGIC or version not in {1, 2, 3}:
        raise malformed("it is no .spz of version 1 to 3", version=version)
    if degree >= len(COEFFICIENTS) or bits > _FRACTION_BITS_MAX:
        raise malformed("its header is out of bounds", degree=degree, fractional_bits=bits)
    return _Header(version, counted(count), degree, bits)


def _unpacked(header: _Header, content: NDArray[np.uint8]) -> Gaussians:
    ends = np.cumsum([header.count * width for width in header.widths])[:-1]
    positions, opacities, colors, scales, rotations, rest = (
        part.reshape(header.count, -1) if len(part) else part.reshape(header.count, 0)
        for part in np.split(content, ends)
    )
    base = (from_bytes(colors) - np.float32(0.5)) / _COLOR_SCALE
    harmonics = (rest.astype(np.float32) - 128) / 128
    return Gaussians(
        _positions(header, positions),
        np.exp(scales.astype(np.float32) / _LOG_SCALE_STEPS + _LOG_SCALE_LEAST),
        _rotations(header, rotations),
        np.ascontiguousarray(from_bytes(opacities)[:, 0]),
        harmonics_of(base[:, None], harmonics.reshape(header.count, -1, 3)),
    )


def _positions(header: _Header, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    if header.version == 1:
        return np.ascontiguousarray(packed).view("<f2").astype(np.float32)
    # The three bytes go to the top of an int32: shifting down again brings the sign along.
    wide = np.zeros((header.count * 3, 4), np.uint8)
    wide[:, 1:] = packed.reshape(-1, 3)
    fixed = wide.view("<i4").reshape(header.count, 3) >> 8
    return fixed.astype(np.float32) / np.float32(1 << header.fraction_bits)


def _rotations(header: _Header, packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    if header.version < 3:
        xyz = packed.astype(np.float32) / np.float32(127.5) - 1
        w = np.sqrt(np.maximum(1 - np.einsum("nc,nc->n", xyz, xyz), 0))
        return unit(np.concatenate((w[:, None], xyz), axis=1))
    word = np.ascontiguousarray(packed).view("<u4")[:, 0]
    others = np.empty((header.count, 3), np.float32)
    for column, shift in enumerate((20, 10, 0)):
        field = word >> np.uint32(shift)
        size = (field & np.uint32(_ROTATION_STEPS)) * np.float32(SMALLEST_THREE_MAX / _ROTATION_STEPS)
        others[:, column] = np.where(field & np.uint32(512), -size, size)
    xyzw = from_smallest_three((word >> np.uint32(30)).astype(np.intp), others)
    return unit(np.roll(xyzw, 1, axis=1))
