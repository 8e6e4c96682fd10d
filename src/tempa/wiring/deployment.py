"""What a process works on, opened: its store, its doorbell, its secrets, its files."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tempa.core.accounts import DEFAULT_ACCOUNT, SCOPES, ApiKey, digest, hint
from tempa.core.clock import SystemClock
from tempa.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from tempa.adapters.artifacts.local import LocalArtifacts
    from tempa.core.accounts import KeyStore
    from tempa.core.work import Wake
    from tempa.wiring.credentials import Credentials
    from tempa.wiring.parts import Store
    from tempa.wiring.settings import Settings

DATABASE_FILE = "tempa.db"


@dataclass(frozen=True, slots=True)
class Deployment:
    """Opened, and migrated. `artifacts` is a context: commands that need no files leave it alone."""

    store: Store
    wake: Wake
    credentials: Credentials
    artifacts: AbstractAsyncContextManager[LocalArtifacts]


@contextlib.asynccontextmanager
async def open_deployment(settings: Settings, data_dir: Path) -> AsyncGenerator[Deployment, None]:
    """Embedded or distributed, as `store.url` says.

    Raises `DirectoryInUse` when another server holds an embedded directory, `SchemaMismatch` and
    `StoreUnavailable` for a database that cannot be used.
    """
    if settings.store.shared:
        from tempa.wiring.distributed import open_distributed as opened  # asyncpg is an extra
    else:
        from tempa.wiring.embedded import open_embedded as opened
    async with opened(settings, data_dir) as deployment:
        await _ensure_first_key(deployment.store, deployment.credentials)
        yield deployment


def database_file(settings: Settings, data_dir: Path) -> Path:
    """Where an embedded store lies."""
    return local_path(settings.store.url, "sqlite://") or data_dir / DATABASE_FILE


def artifacts_root(settings: Settings, data_dir: Path) -> Path:
    """Where files lie."""
    return local_path(settings.artifacts.url, "file://") or data_dir / "artifacts"


def local_path(url: str, scheme: str) -> Path | None:
    """The path a URL names; None for an empty one."""
    return Path(unquote(url.removeprefix(scheme))) if url else None


async def _ensure_first_key(keys: KeyStore, credentials: Credentials) -> None:
    stored = digest(credentials.api_key)
    if await keys.key_by_digest(stored) is None:
        first = ApiKey(
            id=new_id("key"),
            account=DEFAULT_ACCOUNT,
            name="first key",
            hint=hint(credentials.api_key),
            digest=stored,
            scopes=SCOPES,
            created_at=SystemClock().now(),
        )
        await keys.add_key(first)
