"""What `publish` writes, in which order, and what it says while it does."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat import outputs
from tempa.engines.splat.formats import files
from tests.unit.splat.raster.clouds import wild

if TYPE_CHECKING:
    from pathlib import Path


def work(*formats: str, frames: int = 0) -> dict[str, Any]:
    return {
        "export_formats": list(formats),
        "preview": {"width": 32, "height": 24, "turntable_frames": frames},
    }


class Told:
    """A progress that remembers."""

    def __init__(self) -> None:
        self.words: list[tuple[str, float | None]] = []

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        self.words.append((stage, fraction))


def test_the_ply_is_first_and_the_rest_as_asked(tmp_path: Path) -> None:
    made = outputs.publish(wild(50), work("spz", "splat", "ply"), tmp_path, Told())

    assert [file.role for file in made] == ["gaussian_ply", "spz", "splat", "rendered_preview"]
    assert all((tmp_path / file.name).stat().st_size for file in made)


def test_a_ply_that_was_not_asked_for_is_not_written(tmp_path: Path) -> None:
    made = outputs.publish(wild(50), work("splat"), tmp_path, Told())

    assert sorted(file.name for file in made) == sorted(path.name for path in tmp_path.iterdir())
    assert [file.role for file in made] == ["splat", "rendered_preview"]


def test_frames_make_a_turntable(tmp_path: Path) -> None:
    made = outputs.publish(wild(50), work("ply", frames=2), tmp_path, Told())

    assert [file.role for file in made] == ["gaussian_ply", "rendered_preview", "turntable"]


def test_it_tells_how_far_it_is(tmp_path: Path) -> None:
    told = Told()

    outputs.publish(wild(50), work("ply", "splat", frames=2), tmp_path, told, since=0.6)

    assert told.words == [("exporting", 0.6), ("exporting", 0.7), ("rendering", 0.8), ("rendering", 0.9)]


def test_a_file_that_does_not_read_back_is_an_export_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_less(gaussians: Any, path: Path) -> None:
        ply(gaussians, path)
        path.write_bytes(path.read_bytes()[:-4])

    ply = files._WRITERS["ply"]
    monkeypatch.setitem(files._WRITERS, "ply", write_less)

    with pytest.raises(TempaError) as caught:
        outputs.publish(wild(50), work("ply"), tmp_path, Told())

    assert caught.value.code == "EXPORT_FAILED"


def test_a_full_disk_is_told_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_up(gaussians: Any, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setitem(files._WRITERS, "ply", fill_up)

    with pytest.raises(OSError, match="No space left") as caught:
        outputs.publish(wild(50), work("ply"), tmp_path, Told())

    assert caught.value.errno == errno.ENOSPC


def test_a_disk_that_fills_under_a_picture_is_told_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "preview.png").symlink_to("/dev/full")

    with pytest.raises(OSError, match="No space left") as caught:
        outputs.publish(wild(50), work(), tmp_path, Told())

    assert caught.value.errno == errno.ENOSPC
