"""WebP (RFC 9649): the first chunk, and whether there is a second frame."""

from __future__ import annotations

import struct
from typing import BinaryIO

from tempa.engines.splat.image.facts import Facts, broken
from tempa.engines.splat.image.headers.bytes import take

_CHUNK = struct.Struct("<4sI")
_HEAD_BYTES = 12  # RIFF, size, WEBP
_START_CODE = b"\x9d\x01\x2a"
_ANIMATION, _ALPHA = 0x02, 0x10
_CHUNKS_MAX = 1024


def is_webp(head: bytes) -> bool:
    """Whether a file that begins so is one."""
    return head[:4] == b"RIFF" and head[8:12] == b"WEBP"


def read(file: BinaryIO) -> Facts:
    """What it shows. `file` stands at its beginning."""
    take(file, _HEAD_BYTES)
    kind, _size = _CHUNK.unpack(take(file, _CHUNK.size))
    data = take(file, 10)
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (4, 7))
        animated = bool(data[0] & _ANIMATION) and _has_frames(file, 2)
        return Facts("webp", width, height, animated, bool(data[0] & _ALPHA))
    if kind == b"VP8L" and data[0] == 0x2F:
        bits = int.from_bytes(data[1:5], "little")
        return Facts("webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), has_alpha=bool(bits >> 28 & 1))
    if kind == b"VP8 " and data[3:6] == _START_CODE:
        width, height = (value & 0x3FFF for value in struct.unpack_from("<HH", data, 6))
        return Facts("webp", width, height)
    raise broken("The WebP file does not begin with a picture.")


def _has_frames(file: BinaryIO, count: int) -> bool:
    found = 0
    for _ in range(_CHUNKS_MAX):
        head = file.read(_CHUNK.size)
        if len(head) < _CHUNK.size:
            return False
        kind, size = _CHUNK.unpack(head)
        found += kind == b"ANMF"
        if found == count:
            return True
        file.seek(size + size % 2, 1)
    raise broken(f"The WebP file has more than {_CHUNKS_MAX} chunks before its second frame.")
