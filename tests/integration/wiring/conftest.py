"""A data directory with something in it, for each test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tempa.wiring.credentials import load_credentials
from tests.integration.wiring.directories import lived_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.wiring.directories import Directory


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """One whose server was stopped."""
    (tmp_path / "data").mkdir(mode=0o700)
    load_credentials(tmp_path / "data")
    return asyncio.run(lived_in(tmp_path / "data"))
