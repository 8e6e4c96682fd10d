"""Weight files, looked at before anything loads them: the form of their header, and their hash.

Format: safetensors. Eight bytes of length (little-endian), that many bytes of JSON, then the tensors.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEADER_BYTES_MAX = 16 * 1024 * 1024  # the largest of the five has 2,000 tensors of some 100 bytes each
_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Header:
    """What a weight file says of itself."""

    tensors: int
    parameters: int
    size_bytes: int


def look(path: Path, name: str) -> Header:
    """Check that a file's header is whole and fits its size; reads nothing else. `name` is for the message.

    Raises:
        TempaError: MODEL_NOT_INSTALLED if it is not there, MODEL_CHECKSUM_MISMATCH if it is not whole.
    """
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, 2)
            file.seek(0)
            length = int.from_bytes(file.read(8), "little")
            if size_bytes < 8 or length > min(HEADER_BYTES_MAX, size_bytes - 8):
                raise _broken(name, "its header is cut off or is none")
            text = file.read(length)
    except OSError as error:
        raise _missing(name, error) from error
    return _checked(name, text, size_bytes)


def _checked(name: str, text: bytes, size_bytes: int) -> Header:
    try:
        entries = json.loads(text)
        entries.pop("__metadata__", None)
        spans = sorted(_span(entry) for entry in entries.values())
        parameters = sum(math.prod(entry["shape"]) for entry in entries.values())
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _broken(name, "its header is not one of safetensors") from error
    ends = [0, *(end for _, end in spans)]
    if not spans or [begin for begin, _ in spans] != ends[:-1]:
        raise _broken(name, "its tensors overlap or leave gaps")
    if 8 + len(text) + ends[-1] != size_bytes:
        raise _broken(name, f"it has {size_bytes} bytes, and its header says {8 + len(text) + ends[-1]}")
    return Header(len(spans), parameters, size_bytes)


def _span(entry: Mapping[str, Any]) -> tuple[int, int]:
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    if not all(type(number) is int and number >= 0 for number in (begin, end, *shape)):
        raise ValueError("not counts")
    if end - begin != math.prod(shape) * _BYTES[entry["dtype"]]:
        raise ValueError("not the bytes of its shape")
    return begin, end


def sha256(path: Path, name: str) -> str:
    """Of a file, hex.

    Raises:
        TempaError: MODEL_NOT_INSTALLED.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb", buffering=0) as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise _missing(name, error) from error
    return digest.hexdigest()


def require(path: Path, name: str, pin: str | None) -> None:
    """Read a whole file, and refuse it unless it is the pinned one.

    Raises:
        TempaError: MODEL_NOT_INSTALLED, MODEL_CHECKSUM_MISMATCH.
    """
    if pin is None:
        raise unpinned(name)
    found = sha256(path, name)
    if found != pin:
        raise _broken(name, f"its SHA-256 is {found}, and {pin} is pinned")


def unpinned(name: str) -> TempaError:
    """A file that nobody has said the hash of."""
    return TempaError(
        "MODEL_CHECKSUM_MISMATCH",
        f"{name} is not pinned: say its SHA-256 in engines.triposplat.options.pins.",
        hint="`tempa engine install triposplat` computes the pins and prints them.",
        detail={"file": name},
    )


def _missing(name: str, error: OSError) -> TempaError:
    message = f"{name} cannot be read: {error.strerror or 'it is no file'}."
    return TempaError("MODEL_NOT_INSTALLED", message, detail={"file": name})


def _broken(name: str, why: str) -> TempaError:
    return TempaError(
        "MODEL_CHECKSUM_MISMATCH", f"{name} is not the file it should be: {why}.", detail={"file": name}
    )
