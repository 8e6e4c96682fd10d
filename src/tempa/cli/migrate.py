"""`tempa migrate`: bring a data directory's store to this release's schema."""

from __future__ import annotations

from pathlib import Path

from tempa.cli.output import Json, print_json, wants_json
from tempa.cli.up import Config, Data, data_dir, require_store


def migrate(data: Data = None, config: Config = None, as_json: Json = False) -> None:
    """Migrate the store, with the server stopped. `tempa up` does the same by itself at its start."""
    import asyncio

    folder = data_dir(data)
    asyncio.run(_open(folder, config))
    if wants_json(as_json):
        print_json({"data_dir": str(folder), "migrated": True})
    else:
        print(f"The store in {folder} has this release's schema.")


async def _open(folder: Path, config: Path | None) -> None:
    from tempa.wiring.opening import open_deployment
    from tempa.wiring.settings import load_settings

    settings = load_settings(config)
    require_store(settings, folder)
    async with open_deployment(settings, folder):
        return  # opening migrates
