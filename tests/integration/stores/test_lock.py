"""One server a directory, whatever becomes of the one before."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.sqlite.lock import DirectoryInUse, DirectoryLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from tempa.adapters.stores.sqlite.lock import DirectoryLock
with DirectoryLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_holder_is_told_who_holds(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(DirectoryInUse, match=f"in use by process {holder.pid}") as refusal:
        DirectoryLock(tmp_path)

    assert refusal.value.pid == holder.pid


def test_a_killed_holder_holds_no_more(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait(10)

    with DirectoryLock(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_within_one_process_there_is_one_holder_too(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path), pytest.raises(DirectoryInUse) as refusal:
        DirectoryLock(tmp_path)

    assert refusal.value.pid == os.getpid()


def test_what_was_let_go_can_be_taken(tmp_path: Path) -> None:
    first = DirectoryLock(tmp_path)
    first.release()
    first.release()

    with DirectoryLock(tmp_path):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_child_that_outlives_the_holder_does_not_hold(tmp_path: Path) -> None:
    """A kernel's zygote may still be dying when the next server starts."""
    lock = DirectoryLock(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"  # execve wakes us a moment before it closes descriptors
        lock.release()
        with DirectoryLock(tmp_path):
            assert child.poll() is None
        child.kill()


def test_a_lock_file_with_nonsense_in_it_names_nobody(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path):
        (tmp_path / "lock").write_text("x\n")

        with pytest.raises(DirectoryInUse, match="another process"):
            DirectoryLock(tmp_path)


def test_on_a_full_disk_the_lock_is_held_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", no_room)
    with DirectoryLock(tmp_path), pytest.raises(DirectoryInUse) as caught:
        DirectoryLock(tmp_path)
    assert caught.value.pid is None
