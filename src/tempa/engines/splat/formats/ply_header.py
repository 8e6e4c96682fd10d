"""The header of a .ply file (Greg Turk, 1994): elements with named properties of fixed size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tempa.engines.splat.formats.source import malformed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

MAGIC = b"ply"
_HEADER_BYTES_MAX = 1 << 16
_END = b"end_header"
_PROPERTIES_MAX = 512
_COUNT_DIGITS_MAX = 20
_TYPES = {
    "char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "float": "f4", "double": "f8",
    "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4",
    "float32": "f4", "float64": "f8",
}  # fmt: skip
_BYTE_ORDERS = {"binary_little_endian": "<", "binary_big_endian": ">"}

Layout: TypeAlias = "np.dtype[Any]"


@dataclass(frozen=True, slots=True)
class Element:
    """One kind of record: what it is called, how many there are, and what each looks like."""

    name: str
    count: int
    layout: Layout


def text(elements: Iterable[tuple[str, int, Sequence[tuple[str, str]]]]) -> bytes:
    """A little-endian header of elements (name, count, properties as name and type)."""
    lines = ["ply", "format binary_little_endian 1.0"]
    for name, count, properties in elements:
        lines.append(f"element {name} {count}")
        lines.extend(f"property {kind} {title}" for title, kind in properties)
    return "\n".join([*lines, "end_header", ""]).encode()


def parse(data: NDArray[np.uint8]) -> tuple[list[Element], int]:
    """The elements in their order, and where the first one's records begin.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    head = data[:_HEADER_BYTES_MAX].tobytes()
    end = head.find(b"\n" + _END)
    stop = head.find(b"\n", end + 1) if end >= 0 else -1
    if stop < 0:
        raise malformed("the .ply header has no end", looked_at_bytes=len(head))
    lines = head[:end].decode("ascii", "replace").split("\n")
    return _elements(lines), stop + 1


def _elements(lines: Sequence[str]) -> list[Element]:
    byte_order, found = "", list[tuple[str, int, list[tuple[str, str]]]]()
    for number, line in enumerate(lines[1:], 2):
        match line.split():
            case ["format", kind, _]:
                byte_order = _byte_order(kind)
            case ["element", name, count]:
                found.append((name, _count(count, number), []))
            case ["property", kind, name] if found and kind in _TYPES:
                found[-1][2].append((name, byte_order + _TYPES[kind]))
            case [] | ["comment", *_] | ["obj_info", *_]:
                pass
            case _:
                raise malformed("a line of the .ply header is not understood", line=number, text=line[:80])
    if not byte_order:
        raise malformed("the .ply header names no format", lines=len(lines))
    return [Element(name, count, _layout(name, properties)) for name, count, properties in found]


def _byte_order(kind: str) -> str:
    if kind not in _BYTE_ORDERS:
        raise malformed("only binary .ply files of Gaussians are read", format=kind[:40])
    return _BYTE_ORDERS[kind]


def _count(digits: str, line: int) -> int:
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _COUNT_DIGITS_MAX):
        raise malformed("a count in the .ply header is no number", line=line, text=digits[:40])
    return int(digits)


def _layout(element: str, properties: Sequence[tuple[str, str]]) -> Layout:
    names = {name for name, _ in properties}
    if len(names) != len(properties) or len(names) > _PROPERTIES_MAX:
        raise malformed(
            "an element has a property twice, or too many", element=element[:40], properties=len(properties)
        )
    return np.dtype(list(properties))
