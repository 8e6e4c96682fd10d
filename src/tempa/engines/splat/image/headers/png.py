"""PNG and APNG (W3C PNG, third edition): IHDR, and what stands before the pixels."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from tempa.engines.splat.image.facts import Facts, broken
from tempa.engines.splat.image.headers.bytes import take, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = b"\x89PNG\r\n\x1a\n"

_IHDR = struct.Struct(">IIBBBBB")
_CHUNK = struct.Struct(">I4s")
_FRAMES = struct.Struct(">I")
_CRC_BYTES = 4
_ALPHA_TYPES = (4, 6)
_CHUNKS_MAX = 1024  # before the pixels; a 32 MiB file has room for three million


def read(file: BinaryIO) -> Facts:
    """What it shows. `file` stands at its beginning."""
    take(file, len(SIGNATURE))
    size, kind = unpack_chunk(file)
    if kind != b"IHDR" or size != _IHDR.size:
        raise broken("The PNG file has no header chunk.")
    width, height, _depth, color_type, *_ = unpack(file, _IHDR)
    file.seek(_CRC_BYTES, 1)
    animated, keyed = False, False
    for kind, size in _chunks(file):
        if kind == b"acTL" and size >= _FRAMES.size:
            animated = unpack(file, _FRAMES)[0] > 1
        keyed = keyed or kind == b"tRNS"
    return Facts("png", width, height, animated, keyed or color_type in _ALPHA_TYPES)


def unpack_chunk(file: BinaryIO) -> tuple[int, bytes]:
    """Length and type of the chunk that begins here."""
    size, kind = _CHUNK.unpack(take(file, _CHUNK.size))
    return size, kind


def _chunks(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Type and length of each chunk before the pixels; the file stands at the chunk's data."""
    for _ in range(_CHUNKS_MAX):
        size, kind = unpack_chunk(file)
        if kind == b"IDAT":
            return
        start = file.tell()
        yield kind, size
        file.seek(start + size + _CRC_BYTES)
    raise broken(f"The PNG file has more than {_CHUNKS_MAX} chunks before its pixels.")
