"""Commands that work on the store itself. On SQLite they take its directory's lock: the server is stopped."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from tempa.cli.exits import UsageFault
from tempa.cli.up import data_dir, require_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine
    from pathlib import Path

    from tempa.wiring.deployment import Deployment

T = TypeVar("T")


def in_store(work: Coroutine[Any, Any, T]) -> T:
    """Run it."""
    import asyncio  # 40 ms that `tempa --help` need not spend

    return asyncio.run(work)


@asynccontextmanager
async def open_own(
    data: Path | None, config: Path | None, *, make: bool = False
) -> AsyncIterator[Deployment]:
    """Store and credentials of a data directory; `make`: there need not be any yet."""
    from tempa.wiring.opening import open_deployment
    from tempa.wiring.settings import load_settings

    settings, folder = load_settings(config), data_dir(data)
    if not make:
        require_store(settings, folder)
    async with open_deployment(settings, folder) as opened:
        yield opened


def check_account_name(name: str) -> None:
    """Raises UsageFault for a name that no account can have."""
    from tempa.core.accounts import is_account_name

    if not is_account_name(name):
        raise UsageFault(
            f"{name!r} is no name for an account: up to 64 letters, digits, dots, hyphens and underscores, "
            "a letter or digit first."
        )
