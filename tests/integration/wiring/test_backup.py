"""A backup: whole or not at all, beside whoever works, and never over what is there."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.migrations import SCHEMA_VERSION
from tempa.adapters.stores.sqlite.lock import DirectoryInUse, DirectoryLock
from tempa.wiring.backup import back_up
from tempa.wiring.backup_files import BackupFault
from tempa.wiring.settings import load_settings
from tests.integration.wiring.directories import (
    FORMS,
    content,
    everything,
    restored,
    rows,
    unheard,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.wiring.directories import Directory


@pytest.mark.parametrize("form", FORMS)
def test_a_backup_comes_back_as_it_was(directory: Directory, tmp_path: Path, form: str) -> None:
    backup, back = tmp_path / form, tmp_path / "back"
    manifest = directory.back_up(backup)
    before = rows(directory.path / "tempa.db")
    restored(backup, back)

    files = everything(back)
    assert {name: files[name] for name in directory.files} == directory.files
    assert files.keys() - directory.files.keys() == {"tempa.db", "lock"}  # no orphan, no log
    assert rows(back / "tempa.db") == before
    assert not [p for p in back.rglob("*") if p.stat().st_mode & 0o077], "somebody else may read it"
    assert manifest.counts["jobs"] == 1
    assert (manifest.missing, manifest.damaged) == ((), ())


@pytest.mark.parametrize("form", FORMS)
def test_the_manifest_names_every_file_with_its_digest(
    directory: Directory, tmp_path: Path, form: str
) -> None:
    directory.back_up(tmp_path / form)
    files = content(tmp_path / form)

    told = json.loads(files.pop("manifest.json"))

    assert {entry["name"]: (entry["size_bytes"], entry["sha256"]) for entry in told["files"]} == {
        name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    }
    assert (told["format"], told["schema_version"]) == (1, SCHEMA_VERSION)


def test_a_backup_is_taken_beside_whoever_holds_the_directory(directory: Directory, tmp_path: Path) -> None:
    with DirectoryLock(directory.path):
        directory.back_up(tmp_path / "backup")
    assert (tmp_path / "backup/manifest.json").is_file()
    DirectoryLock(directory.path).release()  # it kept no lock


def test_without_a_server_none_starts_while_the_backup_is_taken(directory: Directory, tmp_path: Path) -> None:
    def told(_stage: str, _done: int, _total: int) -> None:
        with pytest.raises(DirectoryInUse):
            DirectoryLock(directory.path)

    directory.back_up(tmp_path / "backup", told)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stage", ["database", "files"])
def test_a_backup_that_was_broken_off_leaves_nothing(
    directory: Directory, tmp_path: Path, form: str, stage: str
) -> None:
    def broken_off(now: str, _done: int, _total: int) -> None:
        if now == stage:
            raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        directory.back_up(tmp_path / form, broken_off)

    assert sorted(tmp_path.iterdir()) == before


def test_what_was_deleted_meanwhile_is_named(directory: Directory, tmp_path: Path) -> None:
    """Retention is at work: the rows were copied, then the file goes."""

    def told(stage: str, _done: int, _total: int) -> None:
        if stage == "database":
            directory.place(".step").unlink(missing_ok=True)

    manifest = directory.back_up(tmp_path / "backup", told)

    (missing,) = manifest.missing
    assert (missing.owner, missing.key) == (directory.job_id, f"{directory.job_id}.a1/model.step")
    restored(tmp_path / "backup", tmp_path / "back")


def test_what_the_disk_has_altered_is_named(directory: Directory, tmp_path: Path) -> None:
    directory.place(".step").write_bytes(b"rot")

    manifest = directory.back_up(tmp_path / "backup")

    assert [absent.owner for absent in manifest.damaged] == [directory.job_id]


@pytest.mark.parametrize("name", ["backup", "backup.tar", "nowhere/backup", "backup.tar.gz", "backup.zip"])
def test_a_backup_replaces_nothing_and_goes_only_where_it_can(
    directory: Directory, tmp_path: Path, name: str
) -> None:
    for taken in FORMS:
        (tmp_path / taken).write_text("mine")

    with pytest.raises(BackupFault):
        directory.back_up(tmp_path / name)

    assert [(tmp_path / taken).read_text() for taken in FORMS] == ["mine", "mine"]


def test_a_directory_without_credentials_is_no_server_s(directory: Directory, tmp_path: Path) -> None:
    (directory.path / "credentials.json").unlink()

    with pytest.raises(FileNotFoundError):
        directory.back_up(tmp_path / "backup")

    assert not (tmp_path / "backup").exists()


def test_a_shared_store_has_backups_of_its_own(directory: Directory, tmp_path: Path) -> None:
    settings = load_settings(environment={}, flags={"store.url": "postgresql://db.example/tempa"})

    with pytest.raises(BackupFault, match="pg_dump"):
        back_up(settings, directory.path, tmp_path / "backup", unheard)


def test_a_store_and_files_elsewhere_are_backed_up_too(directory: Directory, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("tempa.db", "artifacts"):
        (directory.path / name).rename(elsewhere / name)
    flags = {
        "store.url": f"sqlite://{elsewhere}/tempa.db",
        "artifacts.url": f"file://{elsewhere}/artifacts",
    }
    settings = load_settings(environment={}, flags=flags)

    back_up(settings, directory.path, tmp_path / "backup", unheard)
    restored(tmp_path / "backup", tmp_path / "back")

    files = everything(tmp_path / "back")
    assert {name: files[name] for name in directory.files} == directory.files
