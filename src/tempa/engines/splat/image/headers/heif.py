"""AVIF and HEIC (ISO/IEC 14496-12, 23008-12): brands, and the sizes of what they hold."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

from tempa.engines.splat.image.facts import Facts, broken, unsupported
from tempa.engines.splat.image.headers.bytes import take

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tempa.engines.splat.image.facts import Format

_AVIF = {b"avif", b"avis"}
_HEIC = {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"}
_SEQUENCES = {b"avis", b"hevc", b"hevx", b"hevm", b"hevs", b"msf1"}
_HEAD = struct.Struct(">I4s")
_LARGE = struct.Struct(">Q")
_SIZES = struct.Struct(">II")
_VERSION_BYTES = 4  # of a full box
_BOXES_MAX = 4096
_META_BYTES_MAX = 4 * 1024 * 1024  # of a picture in 1,000 tiles: 60 kB
_ALPHA = b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\x00"
_HEVC_ALPHA = b"urn:mpeg:hevc:2015:auxid:1\x00"
_TRACK_SIZES = {0: 76, 1: 88}  # where a track header of this version has width and height


def is_heif(head: bytes) -> bool:
    """Whether a file that begins so is a container of this kind."""
    return head[4:8] == b"ftyp"


def read(file: BinaryIO) -> Facts:
    """What it shows. `file` stands at its beginning."""
    boxes = dict.fromkeys((b"ftyp", b"meta", b"moov"), b"")
    for kind, size in _top_boxes(file):
        if kind in boxes and not boxes[kind]:
            if size > _META_BYTES_MAX:
                raise broken(f"The header of the picture is larger than {_META_BYTES_MAX} bytes.")
            boxes[kind] = take(file, size)
    form = _format(boxes[b"ftyp"])
    sizes, has_alpha = _pictures(boxes[b"meta"])
    sizes += _tracks(boxes[b"moov"])
    if not sizes:
        raise broken("The file does not say how large its picture is.")
    animated = bool(boxes[b"moov"]) and boxes[b"ftyp"][:4] in _SEQUENCES
    width, height = max(sizes, key=lambda size: size[0] * size[1])  # of all, the one that would cost most
    return Facts(form, width, height, animated, has_alpha)


def _format(brands: bytes) -> Format:
    known = {brands[:4], *(brands[at : at + 4] for at in range(8, len(brands), 4))}
    if known & _AVIF:
        return "avif"
    if known & _HEIC:
        return "heic"
    raise unsupported("This is a video or a picture in an MPEG container; of those AVIF and HEIC are read.")


def _top_boxes(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Type and size of each box of the file, which stands at the box's data."""
    end = file.seek(0, 2)
    at = 0
    for _ in range(_BOXES_MAX):
        if at + _HEAD.size > end:
            return
        file.seek(at)
        size, kind = _HEAD.unpack(take(file, _HEAD.size))
        head = _HEAD.size
        if size == 1:
            (size,) = _LARGE.unpack(take(file, _LARGE.size))
            head += _LARGE.size
        size = size or end - at  # 0: to the end of the file
        if size < head:
            raise broken("A box of the file is smaller than its head.")
        yield kind, size - head
        at += size
    raise broken(f"The file has more than {_BOXES_MAX} boxes.")


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and data of each box in `data`."""
    at = 0
    for _ in range(_BOXES_MAX):
        if at + _HEAD.size > len(data):
            return
        size, kind = _HEAD.unpack_from(data, at)
        if not _HEAD.size <= size <= len(data) - at:
            raise broken("A box of the file has an impossible size.")
        yield kind, data[at + _HEAD.size : at + size]
        at += size
    raise broken(f"The file has more than {_BOXES_MAX} boxes in one.")


def _pictures(meta: bytes) -> tuple[list[tuple[int, int]], bool]:
    """Sizes of all pictures among the properties, and whether one is an alpha."""
    sizes, has_alpha = [], False
    for kind, data in _boxes(meta[_VERSION_BYTES:]):
        for inner, properties in _boxes(data) if kind == b"iprp" else ():
            for name, value in _boxes(properties) if inner == b"ipco" else ():
                if name == b"ispe" and len(value) >= _VERSION_BYTES + _SIZES.size:
                    sizes.append(_SIZES.unpack_from(value, _VERSION_BYTES))
                if name == b"auxC":
                    has_alpha |= value[_VERSION_BYTES:].startswith((_ALPHA, _HEVC_ALPHA))
    return sizes, has_alpha


def _tracks(moov: bytes) -> list[tuple[int, int]]:
    """Sizes of the tracks of a sequence, which stand there in sixteenths of 16 bits."""
    sizes = []
    for kind, track in _boxes(moov):
        for name, header in _boxes(track) if kind == b"trak" else ():
            at = _TRACK_SIZES.get(header[0], len(header)) if name == b"tkhd" and header else len(header)
            if at + _SIZES.size <= len(header):
                width, height = _SIZES.unpack_from(header, at)
                sizes.append((width >> 16, height >> 16))
    return sizes
