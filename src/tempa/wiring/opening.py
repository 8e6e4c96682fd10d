"""Opens what a process works on, embedded or distributed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tempa.core.accounts import DEFAULT_ACCOUNT, SCOPES, ApiKey, digest, hint
from tempa.core.clock import SystemClock
from tempa.core.crash import crash_point
from tempa.core.ids import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tempa.core.accounts import KeyStore
    from tempa.wiring.credentials import Credentials
    from tempa.wiring.deployment import Deployment
    from tempa.wiring.settings import Settings


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
        crash_point("start.opened")
        await _ensure_first_key(deployment.store, deployment.credentials)
        crash_point("start.key_kept")
        yield deployment


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
