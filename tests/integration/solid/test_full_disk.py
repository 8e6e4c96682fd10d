"""An export that failed: was it the part, or the disk? The kernel does not say."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox

from tempa.core.errors import TempaError
from tempa.engines.solid import opencascade
from tempa.engines.solid.exports import step
from tests.integration.solid.sample import work


def silent(stage: str, fraction: float | None = None) -> None: ...


@pytest.fixture
def blocked(tmp_path: Path) -> Path:
    """A folder where the kernel cannot write its file."""
    (tmp_path / "model.brep").mkdir()
    return tmp_path


def test_a_disk_that_takes_a_probe_is_not_to_blame(blocked: Path) -> None:
    with pytest.raises(TempaError) as caught:
        opencascade.run(work(export_formats=["brep"]), blocked, silent)
    assert caught.value.code == "EXPORT_FAILED"
    assert [path.name for path in blocked.iterdir()] == ["model.brep"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_does_not_is(blocked: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def full(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=os.strerror(code)) as caught:
        opencascade.run(work(export_formats=["brep"]), blocked, silent)
    assert caught.value.errno == code
    assert [path.name for path in blocked.iterdir()] == ["model.brep"]


def test_a_step_file_that_finds_no_room_says_so() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        step.write(BRepPrimAPI_MakeBox(10.0, 20.0, 30.0).Solid(), Path("/dev/full"))
