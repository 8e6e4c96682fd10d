"""A restore: all of a backup is verified first, and what was there is never lost."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import shutil
import tarfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.adapters.stores.migrations import SCHEMA_VERSION, SchemaMismatch
from tempa.adapters.stores.sqlite.lock import DirectoryInUse, DirectoryLock
from tempa.adapters.stores.sqlite.store import SqliteStore
from tempa.adapters.wakes.in_process import InProcessWake
from tempa.jobs.model import Status
from tempa.testing.clock import ManualClock
from tempa.testing.contracts.bench import StoreBench
from tempa.testing.contracts.samples import ACCOUNT
from tempa.wiring.backup import back_up
from tempa.wiring.backup_files import BackupFault
from tempa.wiring.credentials import load_credentials
from tempa.wiring.restore import restore
from tempa.wiring.settings import load_settings
from tests.integration.wiring.directories import (
    FORMS,
    SETTINGS,
    content,
    everything,
    position,
    restored,
    rewrite,
    rows,
    unheard,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.integration.wiring.directories import Directory


def alter(ending: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        (name,) = (name for name in files if name.endswith(ending))
        files[name] = files[name][:-1] + bytes([files[name][-1] ^ 1])

    return change


def drop(ending: str) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        (name,) = (name for name in files if name.endswith(ending))
        del files[name]

    return change


def tell(**changes: Any) -> Callable[[dict[str, bytes]], None]:
    def change(files: dict[str, bytes]) -> None:
        files["manifest.json"] = json.dumps({**json.loads(files["manifest.json"]), **changes}).encode()

    return change


CORRUPTIONS = {
    "database altered": alter("tempa.db"),
    "credentials altered": alter("credentials.json"),
    "artifact altered": alter(".step"),
    "artifact missing": drop(".step"),
    "database missing": drop("tempa.db"),
    "manifest missing": drop("manifest.json"),
    "manifest cut off": lambda files: files.update({"manifest.json": files["manifest.json"][:40]}),
    "manifest of something else": lambda files: files.update({"manifest.json": b"{}"}),
    "manifest without files": tell(files=[]),
    "made by a newer Tempa": tell(format=2),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("corruption", sorted(CORRUPTIONS))
def test_a_backup_that_is_not_what_was_made_is_refused_and_nothing_changed(
    directory: Directory, tmp_path: Path, form: str, corruption: str
) -> None:
    backup, target = tmp_path / form, tmp_path / "back"
    directory.back_up(backup)
    rewrite(backup, CORRUPTIONS[corruption])
    target.mkdir()
    (target / "tempa.db").write_text("what was there")

    with pytest.raises(BackupFault):
        restored(backup, target, force=True)

    assert (target / "tempa.db").read_text() == "what was there"
    assert {path.name for path in target.iterdir()} <= {"tempa.db", "lock"}


@pytest.mark.parametrize("name", ["artifacts/../../planted", "artifacts/./../planted", "/planted", "planted"])
def test_a_backup_that_names_a_place_outside_is_refused(
    directory: Directory, tmp_path: Path, name: str
) -> None:
    """Its digests are right: whoever made it wants a file written there."""
    backup, planted = tmp_path / "backup.tar", b"planted"
    directory.back_up(backup)
    files = content(backup)
    manifest = json.loads(files["manifest.json"])
    digest = hashlib.sha256(planted).hexdigest()
    manifest["files"].append({"name": name, "size_bytes": len(planted), "sha256": digest})
    with tarfile.open(backup, "w") as tar:
        for member, data in {**files, name: planted, "manifest.json": json.dumps(manifest).encode()}.items():
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

    with pytest.raises(BackupFault, match="names"):
        restored(backup, tmp_path / "back")

    assert not list(tmp_path.rglob("planted"))
    assert not Path("/planted").exists()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_tar_that_was_cut_off_is_refused(directory: Directory, tmp_path: Path, share: float) -> None:
    backup = tmp_path / "backup.tar"
    directory.back_up(backup)
    whole = backup.read_bytes()
    backup.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(BackupFault):
        restored(backup, tmp_path / "back")

    assert {path.name for path in (tmp_path / "back").glob("*")} <= {"lock"}


def test_a_newer_schema_is_refused(directory: Directory, tmp_path: Path) -> None:
    directory.back_up(tmp_path / "backup")
    rewrite(tmp_path / "backup", tell(schema_version=SCHEMA_VERSION + 1))

    with pytest.raises(SchemaMismatch, match="newer Tempa"):
        restored(tmp_path / "backup", tmp_path / "back")


def test_a_running_servers_directory_is_refused(directory: Directory, tmp_path: Path) -> None:
    directory.back_up(tmp_path / "backup")
    before = everything(directory.path)

    with DirectoryLock(directory.path), pytest.raises(DirectoryInUse):
        restored(tmp_path / "backup", directory.path, force=True)

    assert everything(directory.path) == {**before, "lock": b""}


def test_what_is_there_stays_unless_it_is_told_to_move_aside(directory: Directory, tmp_path: Path) -> None:
    directory.back_up(tmp_path / "backup")
    target = tmp_path / "other"
    shutil.copytree(directory.path, target)
    (target / "tempa.db-wal").write_text("log of the old one")
    before = everything(target)

    with pytest.raises(BackupFault, match="--force"):
        restored(tmp_path / "backup", target)
    untouched = everything(target)
    outcome = restored(tmp_path / "backup", target, force=True)

    assert {**untouched, "lock": b""} == {**before, "lock": b""}
    assert outcome.moved_aside is not None
    assert everything(outcome.moved_aside) == {name: data for name, data in before.items() if name != "lock"}
    assert not (target / "tempa.db-wal").exists()  # the old log would be played into the new database
    assert rows(target / "tempa.db") == rows(directory.path / "tempa.db")


def test_a_restored_feed_gives_no_position_that_was_given_before(
    directory: Directory, tmp_path: Path
) -> None:
    """Its readers may have gone on for a month after the backup; JavaScript counts up to 2**53."""
    directory.back_up(tmp_path / "backup")
    restored(tmp_path / "backup", tmp_path / "back")

    given = position(tmp_path / "back/tempa.db")

    assert given > position(directory.path / "tempa.db") + 30 * 86_400 * 100_000
    assert given < 2**53 / 1000


async def test_what_ran_is_handed_back_and_counts_no_crash(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    load_credentials(tmp_path / "there")
    async with opened(tmp_path / "there") as bench:
        running, canceled = await bench.start(), await bench.start()
        await bench.store.cancel(ACCOUNT, canceled.job.id)
        await asyncio.to_thread(back_up, SETTINGS, tmp_path / "there", tmp_path / "backup", unheard)

    await asyncio.to_thread(restored, tmp_path / "backup", tmp_path / "here")

    async with opened(tmp_path / "here") as bench:
        job = await bench.reread(running.job)
        log = await bench.store.job_events(job.id, 0, 10)
        assert (job.status, job.epoch, job.crash_count, job.retry_count) == (Status.QUEUED, 1, 0, 0)
        assert [event.type for event in log] == ["job.queued", "job.started", "job.retrying"]
        assert (await bench.reread(canceled.job)).status is Status.CANCELED
        assert await bench.store.void_leases() == 0


@asynccontextmanager
async def opened(data_dir: Path) -> AsyncIterator[StoreBench]:
    """The store of a data directory."""
    clock = ManualClock()
    wake = InProcessWake(clock)
    store = await SqliteStore.open(data_dir / "tempa.db", clock=clock, wake=wake)
    try:
        yield StoreBench(store=store, clock=clock, wake=wake)
    finally:
        await store.close()


def test_restores_one_after_the_other_each_keep_what_was_there(directory: Directory, tmp_path: Path) -> None:
    directory.back_up(tmp_path / "backup")
    restored(tmp_path / "backup", tmp_path / "back")

    asides = [restored(tmp_path / "backup", tmp_path / "back", force=True).moved_aside for _ in range(2)]

    assert len({*asides}) == 2
    assert all(aside and (aside / "tempa.db").is_file() for aside in asides)


def test_what_a_killed_restore_left_is_in_nobodys_way(directory: Directory, tmp_path: Path) -> None:
    directory.back_up(tmp_path / "backup")
    left = tmp_path / "back" / ".restoring" / "artifacts"
    left.mkdir(parents=True)
    (left / "half").write_text("half")

    restored(tmp_path / "backup", tmp_path / "back")

    assert everything(tmp_path / "back").keys() == {*directory.files, "tempa.db", "lock"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store.url", "postgresql://db.example/tempa"),
        ("store.url", "sqlite:////var/lib/tempa.db"),
        ("artifacts.url", "file:///srv/artifacts"),
    ],
)
def test_a_restore_fills_a_plain_directory_only(
    directory: Directory, tmp_path: Path, name: str, value: str
) -> None:
    directory.back_up(tmp_path / "backup")
    settings = load_settings(environment={}, flags={name: value})

    with pytest.raises(BackupFault, match=r"store\.url|artifacts\.url"):
        restore(settings, tmp_path / "backup", tmp_path / "back", unheard)
