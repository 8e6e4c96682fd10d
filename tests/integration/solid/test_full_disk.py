"""An export that failed: was it the part, or the disk? The kernel does not say."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tempa.core.errors import TempaError
from tempa.engines.solid import opencascade
from tests.integration.solid.sample import work

if TYPE_CHECKING:
    from pathlib import Path


def silent(stage: str, fraction: float | None = None) -> None: ...


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A folder where the kernel cannot write its files."""
    for name in ("model.step", "model.brep"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ["step", "brep"])
def test_a_disk_that_takes_a_probe_is_not_to_blame(blocked: Path, name: str) -> None:
    with pytest.raises(TempaError) as caught:
        opencascade.run(work(export_formats=[name]), blocked, silent)
    assert caught.value.code == "EXPORT_FAILED"
    assert sorted(path.name for path in blocked.iterdir()) == ["model.brep", "model.step"]


@pytest.mark.parametrize("name", ["step", "brep"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_does_not_is(
    blocked: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=os.strerror(code)) as caught:
        opencascade.run(work(export_formats=[name]), blocked, silent)
    assert caught.value.errno == code
    assert sorted(path.name for path in blocked.iterdir()) == ["model.brep", "model.step"]
