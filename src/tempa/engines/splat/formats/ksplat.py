""".ksplat, the buffer of mkkellogg's GaussianSplats3D: a header, sections with headers, then their records.

Written at level 0: float32 throughout, but bytes for colour and opacity; degrees 0 to 2, which is what
that viewer draws. Read at levels 0 (float32), 1 (16 bits, spherical harmonics as float16) and 2 (those
as bytes). Layout: `SplatBuffer.js` of that project; harmonics lie by degree, then channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.packing import coefficients_of, from_bytes, harmonics_of, to_bytes
from tempa.engines.splat.formats.source import SCALE_LEAST, counted, malformed, records, unit
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians, joined

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DEGREE_MAX = 2
_HEADER_BYTES = 4096
_SECTION_BYTES = 1024
_SECTIONS_MAX = 4096
_HARMONICS_RANGE = 1.5  # of level 2, where the header tells none
_SCALE_RANGE = 32767
_BLOCK = 1 << 16
_HEADER = np.dtype(
    {
        "names": [
            "version",
            "sections_max",
            "sections",
            "count_max",
            "count",
            "level",
            "center",
            "harmonics",
        ],
        "formats": [("u1", 2), "<u4", "<u4", "<u4", "<u4", "<u2", ("<f4", 3), ("<f4", 2)],
        "offsets": [0, 4, 8, 12, 16, 20, 24, 36],
        "itemsize": _HEADER_BYTES,
    }
)
_SECTION = np.dtype(
    {
        "names": [
            "count", "count_max", "bucket_size", "buckets", "block_side", "bucket_bytes", "range",
            "bytes", "full_buckets", "partial_buckets", "degree",
        ],
        "formats": ["<u4", "<u4", "<u4", "<u4", "<f4", "<u2", "<u4", "<u4", "<u4", "<u4", "<u2"],
        "offsets": [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40],
        "itemsize": _SECTION_BYTES,
    }
)  # fmt: skip


def _row(level: int, degree: int) -> np.dtype[Any]:
    """A record: position, scale, rotation (w first), colour with opacity, spherical harmonics."""
    wide = level == 0
    position, other = ("<f4", "<f4") if wide else ("<u2", "<f2")
    rest = ("<f4", "<f2", "u1")[level]
    fields: list[Any] = [
        ("position", position, 3), ("scale", other, 3), ("rotation", other, 4), ("color", "u1", 4),
        ("rest", rest, (3 * (COEFFICIENTS[degree] - 1),)),
    ]  # fmt: skip
    return np.dtype(fields)


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame; spherical harmonics above degree 2 are left out."""
    degree = min(gaussians.degree, DEGREE_MAX)
    layout = _row(0, degree)
    count = len(gaussians)
    header = np.zeros((), _HEADER)
    for name, value in {
        "version": (0, 1), "sections_max": 1, "sections": 1, "count_max": count, "count": count,
        "harmonics": (-_HARMONICS_RANGE, _HARMONICS_RANGE),
    }.items():  # fmt: skip
        header[name] = value
    section = np.zeros((), _SECTION)
    for name, value in {
        "count": count, "count_max": count, "bytes": (count * layout.itemsize) & 0xFFFFFFFF, "degree": degree,
    }.items():  # fmt: skip
        section[name] = value
    with path.open("wb") as file:
        file.write(header.tobytes() + section.tobytes())
        for start in range(0, count, _BLOCK):
            part = gaussians.take(np.arange(start, min(start + _BLOCK, count)))
            file.write(_rows(turned(part), layout, degree).view(np.uint8).data)


def _rows(part: Gaussians, layout: np.dtype[Any], degree: int) -> NDArray[Any]:
    rows = np.zeros(len(part), layout)
    rows["position"], rows["scale"], rows["rotation"] = part.positions, part.scales, part.rotations
    rows["color"][:, :3] = to_bytes(part.colors)
    rows["color"][:, 3] = to_bytes(part.opacities)
    for start, stop in _degrees(degree):
        by_channel = part.harmonics[:, start:stop].transpose(0, 2, 1)
        rows["rest"][:, 3 * (start - 1) : 3 * (stop - 1)] = by_channel.reshape(len(part), -1)
    return rows


def _degrees(degree: int) -> list[tuple[int, int]]:
    """Where the coefficients of degrees 1, 2, ... begin and end."""
    return list(pairwise(COEFFICIENTS[: degree + 1]))


@dataclass(frozen=True, slots=True)
class _Section:
    """A section as its header has it, and where its bytes begin."""

    header: NDArray[Any]
    offset: int
    layout: np.dtype[Any]

    def told(self, name: str) -> int:
        return int(self.header[name])

    @property
    def centers_offset(self) -> int:
        return self.offset + 4 * self.told("partial_buckets")

    @property
    def rows_offset(self) -> int:
        return self.centers_offset + self.told("bucket_bytes") * self.told("buckets")

    @property
    def end(self) -> int:
        return self.rows_offset + self.layout.itemsize * self.told("count_max")


def matches(data: NDArray[np.uint8]) -> bool:
    """Whether it begins like one: version 0.1, a level, sections, and zeros behind the header's fields."""
    if len(data) < _HEADER_BYTES:
        return False
    header = np.frombuffer(data[:_HEADER_BYTES].data, _HEADER)[0]
    return (
        tuple(header["version"]) == (0, 1) and int(header["level"]) < 3 and not data[64:_HEADER_BYTES].any()
    )


def read(data: NDArray[np.uint8]) -> Gaussians:
    """Read a whole file.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    header = records(data, 0, 1, _HEADER, "the header")[0]
    if tuple(header["version"]) != (0, 1) or int(header["level"]) > 2:
        raise malformed(
            "its version is not known", version=header["version"].tolist(), level=int(header["level"])
        )
    counted(int(header["count"]))
    parts = [_read_section(data, header, each) for each in _sections(data, header)]
    if not parts or sum(len(part.positions) for part in parts) != int(header["count"]):
        raise malformed("its sections hold another number than its header tells", count=int(header["count"]))
    coefficients = max(part.harmonics.shape[1] for part in parts)
    return turned(joined([_padded(part, coefficients) for part in parts]))


def _sections(data: NDArray[np.uint8], header: NDArray[Any]) -> list[_Section]:
    number = int(header["sections_max"])
    if number > _SECTIONS_MAX:
        raise malformed("it has too many sections", sections=number, limit=_SECTIONS_MAX)
    found, offset = list[_Section](), _HEADER_BYTES + number * _SECTION_BYTES
    for each in records(data, _HEADER_BYTES, number, _SECTION, "the section headers"):
        if int(each["degree"]) > DEGREE_MAX:
            raise malformed("a section's degree is not from 0 to 2", degree=int(each["degree"]))
        section = _Section(each, offset, _row(int(header["level"]), int(each["degree"])))
        found.append(section)
        offset = section.end
    return [section for section in found if section.told("count")]


def _read_section(data: NDArray[np.uint8], header: NDArray[Any], section: _Section) -> Gaussians:
    level, count = int(header["level"]), section.told("count")
    if count > section.told("count_max"):
        raise malformed("a section holds more than it has room for", count=count)
    rows = records(data, section.rows_offset, count, section.layout, "a section's records")
    color = from_bytes(rows["color"])
    positions = rows["position"].astype(np.float32)
    if level:
        positions = _placed(data, section, positions)
    return Gaussians(
        np.ascontiguousarray(positions),
        np.maximum(rows["scale"].astype(np.float32), np.float32(SCALE_LEAST)),
        unit(rows["rotation"].astype(np.float32)),
        np.ascontiguousarray(color[:, 3]),
        harmonics_of(coefficients_of(color[:, :3]), _rest(header, rows["rest"], section)),
    )


def _placed(data: NDArray[np.uint8], section: _Section, steps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Positions of 16 bits, each around the centre of its bucket."""
    centers = records(
        data, section.centers_offset, 3 * section.told("buckets"), "<f4", "the buckets' centres"
    )
    bucket = _buckets(data, section, len(steps))
    if not len(bucket) or bucket[-1] >= section.told("buckets"):
        raise malformed("a Gaussian lies in a bucket that is not there", buckets=section.told("buckets"))
    reach = section.told("range") or _SCALE_RANGE
    step = np.float32(section.header["block_side"]) / np.float32(2 * reach)
    placed: NDArray[np.float32] = (steps - np.float32(reach)) * step + centers.reshape(-1, 3)[bucket]
    return placed


def _buckets(data: NDArray[np.uint8], section: _Section, count: int) -> NDArray[np.intp]:
    """Which bucket each Gaussian lies in: full ones first, then those whose sizes are told."""
    sizes = records(data, section.offset, section.told("partial_buckets"), "<u4", "the buckets' sizes")
    size, full = section.told("bucket_size"), section.told("full_buckets")
    in_full = min(count, size * full)
    bucket = np.empty(count, np.intp)
    bucket[:in_full] = np.arange(in_full) // max(size, 1)
    ends = np.cumsum(sizes, dtype=np.int64)
    bucket[in_full:] = full + np.searchsorted(ends, np.arange(count - in_full), side="right")
    return bucket


def _rest(header: NDArray[Any], values: NDArray[Any], section: _Section) -> NDArray[np.float32]:
    degree = section.told("degree")
    rest: NDArray[np.floating[Any]] = values.astype(np.float32)
    if int(header["level"]) == 2:
        least, most = (float(end) for end in header["harmonics"])
        if not (least or most):
            least, most = -_HARMONICS_RANGE, _HARMONICS_RANGE
        rest = np.float32(least) + rest / 255 * (np.float32(most) - np.float32(least))
    by_degree = [
        rest[:, 3 * (start - 1) : 3 * (stop - 1)].reshape(len(rest), 3, stop - start).transpose(0, 2, 1)
        for start, stop in _degrees(degree)
    ]
    return np.concatenate([np.zeros((len(rest), 0, 3), np.float32), *by_degree], axis=1)


def _padded(part: Gaussians, coefficients: int) -> Gaussians:
    lacking = np.zeros((len(part), coefficients - part.harmonics.shape[1], 3), np.float32)
    harmonics = harmonics_of(part.harmonics[:, :1], np.concatenate((part.harmonics[:, 1:], lacking), axis=1))
    return Gaussians(part.positions, part.scales, part.rotations, part.opacities, harmonics)
