"""How a mesh's file is refused."""

from __future__ import annotations

from typing import Any

from tempa.core.errors import TempaError


def unreadable(what: str, /, **detail: Any) -> TempaError:
    """IMPORT_FAILED, with what is wrong."""
    return TempaError("IMPORT_FAILED", f"The mesh could not be read: {what}.", detail=detail)
