"""An engine whose kernel takes the process down when it is loaded."""

from __future__ import annotations

import ctypes


def load() -> None:
    ctypes.string_at(0)
