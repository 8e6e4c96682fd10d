"""Tempa: a durable job server for geometry that takes minutes.

`Client`, `AsyncClient` and `JobFailed` are loaded when they are first asked for: every process of
the house imports this module, and only few of them are clients (types: `__init__.pyi`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

__all__ = ["AsyncClient", "Client", "JobFailed", "__version__"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("tempa.client"), name)
    raise AttributeError(f"module 'tempa' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
