"""STL, binary and as text: triangles and nothing else. The normals in the file are not looked at."""

from __future__ import annotations

import numpy as np

from tempa.engines.splat.mesh.faults import unreadable
from tempa.engines.splat.mesh.surface import FACES_MAX, Paint, Surface, part

_HEADER_BYTES = 84
_FACE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_LINES_PER_FACE = 3


def is_binary(data: bytes) -> bool:
    """By its size: some programs begin binary files with `solid`, too."""
    if len(data) < _HEADER_BYTES:
        return False
    return len(data) == _HEADER_BYTES + _FACE.itemsize * int.from_bytes(data[80:84], "little")


def is_text(data: bytes) -> bool:
    """It begins with `solid`, and a facet follows."""
    return data[:512].lstrip().lower().startswith(b"solid") and b"facet" in data[:4096].lower()


def read(data: bytes) -> Surface:
    """Read either kind.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    corners = _of_bytes(data) if is_binary(data) else _of_text(data)
    return part(corners.astype(np.float64), Paint())


def _of_bytes(data: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.float32]]:
    count = (len(data) - _HEADER_BYTES) // _FACE.itemsize
    if count > FACES_MAX:
        raise unreadable("it has too many triangles", triangles=count, limit=FACES_MAX)
    return np.frombuffer(data, _FACE, count, _HEADER_BYTES)["corners"]


def _of_text(data: bytes) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    words = [line.split()[1:4] for line in data.lower().splitlines() if line.lstrip().startswith(b"vertex")]
    if len(words) % _LINES_PER_FACE or len(words) > _LINES_PER_FACE * FACES_MAX:
        raise unreadable("its vertices make no whole triangles, or too many", vertices=len(words))
    try:
        numbers = np.array(words, np.float64)
    except ValueError as error:
        raise unreadable("a vertex is no three numbers") from error
    return numbers.reshape(-1, 3, 3)
