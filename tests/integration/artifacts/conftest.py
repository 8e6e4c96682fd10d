"""A store of files of its own for each test, and what looks over its shoulder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tempa.adapters.artifacts.local import LocalArtifacts


@pytest.fixture
def store(tmp_path: Path) -> LocalArtifacts:
    opened = LocalArtifacts(tmp_path / "artifacts")
    opened.open()
    return opened


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is flushed, as it is flushed."""
    names: list[str] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        names.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    return names
