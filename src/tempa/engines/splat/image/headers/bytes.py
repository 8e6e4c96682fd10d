"""Reading of a few bytes at a place of an open file."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from tempa.engines.splat.image.facts import broken

if TYPE_CHECKING:
    import struct


def take(file: BinaryIO, size: int) -> bytes:
    """The next `size` bytes, all of them."""
    data = file.read(size)
    if len(data) < size:
        raise broken("The file ends within its header.")
    return data


def unpack(file: BinaryIO, layout: struct.Struct) -> tuple[int, ...]:
    """The next fields."""
    return layout.unpack(take(file, layout.size))
