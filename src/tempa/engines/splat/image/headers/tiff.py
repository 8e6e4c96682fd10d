"""TIFF 6.0: the first directory. What follows it (thumbnails, further pages) is not read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from tempa.engines.splat.image.facts import Facts, Fault, Refused, broken, unsupported
from tempa.engines.splat.image.headers.bytes import take

if TYPE_CHECKING:
    from collections.abc import Mapping

ORDERS = {b"II*\x00": "<", b"MM\x00*": ">"}
BIG = (b"II+\x00", b"MM\x00+")

_WIDTH, _HEIGHT, _BITS, _COMPRESSION = 256, 257, 258, 259
_SAMPLES, _ROWS_PER_STRIP, _TILE_WIDTH, _TILE_HEIGHT, _EXTRA_SAMPLES = 277, 278, 322, 323, 338
_SIZES = {1: "B", 3: "H", 4: "I"}  # the types that sizes and counts may have
_ENTRY_BYTES = 12
_ENTRIES_MAX = 1024
_NONE = 1
# JPEG in TIFF's old form (6) and what only facsimiles and one vendor write is not read.
_COMPRESSIONS = {_NONE: "none", 5: "LZW", 7: "JPEG", 8: "deflate", 32773: "PackBits", 32946: "deflate"}
_SAMPLES_MAX = 8
_PIECE_BYTES_MAX = 64 * 1024 * 1024  # a strip or tile is unpacked in one piece


def read(file: BinaryIO) -> Facts:
    """What it shows. `file` stands at its beginning."""
    order = ORDERS[take(file, 4)]
    (offset,) = struct.unpack(f"{order}I", take(file, 4))
    file.seek(offset)
    (count,) = struct.unpack(f"{order}H", take(file, 2))
    if not 1 <= count <= _ENTRIES_MAX:
        raise broken(f"The TIFF file's directory has {count} entries; 1 to {_ENTRIES_MAX} are read.")
    tags = _tags(take(file, count * _ENTRY_BYTES), order)
    if _WIDTH not in tags or _HEIGHT not in tags:
        raise broken("The TIFF file does not say how large its picture is.")
    _check(tags)
    return Facts("tiff", tags[_WIDTH], tags[_HEIGHT], has_alpha=_EXTRA_SAMPLES in tags)


def _tags(directory: bytes, order: str) -> Mapping[int, int]:
    """The first value of each number that stands in the entry itself."""
    tags = {}
    for at in range(0, len(directory), _ENTRY_BYTES):
        tag, kind, count = struct.unpack_from(f"{order}HHI", directory, at)
        layout = _SIZES.get(kind)
        inside = layout is not None and count * struct.calcsize(layout) <= 4
        if inside:
            (tags[tag],) = struct.unpack_from(f"{order}{layout}", directory, at + 8)
        elif tag in (_BITS, _EXTRA_SAMPLES):  # their values stand elsewhere
            tags[tag] = 16
    return tags


def _check(tags: Mapping[int, int]) -> None:
    compression = tags.get(_COMPRESSION, _NONE)
    if compression not in _COMPRESSIONS:
        known = ", ".join(dict.fromkeys(_COMPRESSIONS.values()))
        raise unsupported(f"TIFF compression {compression} is not read here. Read are: {known}.")
    samples = tags.get(_SAMPLES, 1)
    if not 1 <= samples <= _SAMPLES_MAX:
        raise unsupported(f"The TIFF file has {samples} samples a pixel; at most {_SAMPLES_MAX} are read.")
    if compression != _NONE:
        _check_piece(tags, samples)


def _check_piece(tags: Mapping[int, int], samples: int) -> None:
    """A packed strip or tile is unpacked whole: one of a gigabyte would need as much memory."""
    rows = min(tags.get(_ROWS_PER_STRIP, tags[_HEIGHT]), tags[_HEIGHT])
    width = tags[_WIDTH]
    if _TILE_WIDTH in tags:
        width, rows = tags[_TILE_WIDTH], tags.get(_TILE_HEIGHT, tags[_TILE_WIDTH])
    size = width * rows * samples * -(-tags.get(_BITS, 1) // 8)
    if size > _PIECE_BYTES_MAX:
        message = f"A strip or tile of the TIFF file has {size} bytes; the limit is {_PIECE_BYTES_MAX}."
        hint = "Write the file with smaller strips, or as PNG."
        raise Refused(Fault("IMAGE_TOO_LARGE", message, _PIECE_BYTES_MAX, size, hint))
