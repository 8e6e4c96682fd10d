"""One folder of files for several processes: each has scratch of its own, and none sweeps another's."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.core.ids import new_id
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from pathlib import Path

DAY_SECONDS = 86_400.0
LONGEST_ATTEMPT_SECONDS = DAY_SECONDS  # the most that an engine's timeout may be set to
STEP = MadeFile("model.step", "step", "step", "model/step")


def opened(root: Path, instance: str) -> LocalArtifacts:
    artifacts = LocalArtifacts(root, instance=instance)
    artifacts.open()
    return artifacts


def age(folder: Path, seconds: float) -> None:
    written = time.time() - seconds
    os.utime(folder, (written, written))


@pytest.fixture
def mine(tmp_path: Path) -> LocalArtifacts:
    return opened(tmp_path, "wrk_1")


async def test_a_start_leaves_alone_what_another_process_works_on(
    mine: LocalArtifacts, tmp_path: Path
) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = mine.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    age(folder.parent, LONGEST_ATTEMPT_SECONDS + 60)  # nothing else was begun there meanwhile

    opened(tmp_path, "wrk_2")

    (kept,) = await mine.keep(prefix, folder, [STEP])
    path = await mine.path(kept.key)
    assert path is not None
    assert path.read_bytes() == b"solid"


def test_the_same_attempt_in_two_processes_is_two_folders(mine: LocalArtifacts, tmp_path: Path) -> None:
    """A scratch folder begins empty: one for both would be emptied while the first still writes."""
    theirs = opened(tmp_path, "wrk_2")
    (mine.scratch("cad_x.a1") / "model.step").write_bytes(b"mine")

    assert list(theirs.scratch("cad_x.a1").iterdir()) == []

    (left,) = (tmp_path / ".tempa" / "scratch").glob("*/cad_x.a1/model.step")
    assert left.read_bytes() == b"mine"


def test_what_a_process_left_that_is_long_dead_is_swept(mine: LocalArtifacts, tmp_path: Path) -> None:
    folder = mine.scratch("cad_x.a1")
    (folder / "half").write_bytes(b"half")
    age(folder.parent, 2 * DAY_SECONDS + 60)

    opened(tmp_path, "wrk_2")

    assert [path.name for path in (tmp_path / ".tempa" / "scratch").iterdir()] == ["wrk_2"]


async def test_what_one_has_kept_the_others_find(mine: LocalArtifacts, tmp_path: Path) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = mine.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    (kept,) = await mine.keep(prefix, folder, [STEP])

    assert await opened(tmp_path, "wrk_2").path(kept.key) == await mine.path(kept.key)
