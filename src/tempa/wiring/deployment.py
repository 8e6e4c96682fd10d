"""What a process works on: its store, its doorbell, its secrets, its files; and where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from tempa.adapters.artifacts.local import LocalArtifacts
    from tempa.core.roles import Role
    from tempa.core.work import Wake
    from tempa.wiring.credentials import Credentials
    from tempa.wiring.parts import Store
    from tempa.wiring.settings import Settings

DATABASE_FILE = "tempa.db"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Opened, and migrated. `artifacts` is a context: commands that need no files leave it alone.

    `upkeep` is what a server has to run besides what it is told to.
    """

    store: Store
    wake: Wake
    credentials: Credentials
    artifacts: AbstractAsyncContextManager[LocalArtifacts]
    upkeep: tuple[Role, ...] = ()


def database_file(settings: Settings, data_dir: Path) -> Path:
    """Where an embedded store lies."""
    return local_path(settings.store.url, "sqlite://") or data_dir / DATABASE_FILE


def artifacts_root(settings: Settings, data_dir: Path) -> Path:
    """Where files lie."""
    return local_path(settings.artifacts.url, "file://") or data_dir / "artifacts"


def local_path(url: str, scheme: str) -> Path | None:
    """The path a URL names; None for an empty one."""
    return Path(unquote(url.removeprefix(scheme))) if url else None
