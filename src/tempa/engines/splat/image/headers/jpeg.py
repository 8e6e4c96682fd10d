"""JPEG (ITU-T T.81): the first start of frame."""

from __future__ import annotations

import struct
from typing import BinaryIO

from tempa.engines.splat.image.facts import Facts, broken
from tempa.engines.splat.image.headers.bytes import take, unpack

SIGNATURE = b"\xff\xd8\xff"

_LENGTH = struct.Struct(">H")
_FRAME = struct.Struct(">BHH")
_FRAME_STARTS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # not DHT, JPG, DAC
_BARE = {0x01, *range(0xD0, 0xD9)}  # TEM, RST, SOI: no length follows
_ENDS = {0xD9, 0xDA}  # EOI, SOS
_SEGMENTS_MAX = 4096  # an ICC profile and EXIF take a few dozen
_FILL_MAX = 4096


def read(file: BinaryIO) -> Facts:
    """What it shows. `file` stands at its beginning."""
    take(file, 2)
    for _ in range(_SEGMENTS_MAX):
        marker = _marker(file)
        if marker in _ENDS:
            raise broken("The JPEG file has no frame before its pixels.")
        if marker in _BARE:
            continue
        (size,) = unpack(file, _LENGTH)
        if marker in _FRAME_STARTS:
            _depth, height, width = unpack(file, _FRAME)
            return Facts("jpeg", width, height)
        if size < _LENGTH.size:
            raise broken("The JPEG file has a segment of impossible length.")
        file.seek(size - _LENGTH.size, 1)
    raise broken(f"The JPEG file has more than {_SEGMENTS_MAX} segments before its frame.")


def _marker(file: BinaryIO) -> int:
    """The next marker; bytes 0xFF before it are filling."""
    if take(file, 1) != b"\xff":
        raise broken("The JPEG file has data where a marker belongs.")
    for _ in range(_FILL_MAX):
        (code,) = take(file, 1)
        if code != 0xFF:
            return code
    raise broken("The JPEG file is filled where a marker belongs.")
