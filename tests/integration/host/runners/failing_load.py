"""An engine whose kernel is not there."""

from __future__ import annotations


def load() -> None:
    print("looking for libforge")  # noqa: T201 - must not reach the server's output
    raise ImportError("libforge.so.7: cannot open shared object file")
