"""Files on disk: flushed before they are acknowledged, bounded, never outside their root."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.artifacts.local import LocalArtifacts
from tempa.core.errors import Refusal
from tempa.core.ids import new_id
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STEP = MadeFile("model.step", "step", "step", "model/step")


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_what_is_kept_is_there_under_its_key_with_size_and_hash(store: LocalArtifacts) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    (folder / "stray.log").write_bytes(b"nobody asked for this")
    (kept,) = await store.keep(prefix, folder, [STEP])
    assert (kept.size_bytes, kept.sha256) == (5, hashlib.sha256(b"solid").hexdigest())
    path = await store.path(kept.key)
    assert path is not None
    assert path.read_bytes() == b"solid"
    assert [entry.name for entry in path.parent.iterdir()] == ["model.step"]
    assert not folder.exists()


async def test_files_and_folders_are_flushed_before_keep_returns(
    store: LocalArtifacts, flushed: list[str]
) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    (kept,) = await store.keep(prefix, folder, [STEP])
    path = await store.path(kept.key)
    assert path is not None
    shard = path.parent.parent.name
    assert flushed == ["model.step", prefix, "artifacts", shard]
    flushed.clear()
    folder = store.scratch("cad_" + prefix[4:-2] + "a2")  # the same shard: it is there and flushed already
    (folder / "model.step").write_bytes(b"solid")
    await store.keep(folder.name, folder, [STEP])
    assert flushed == ["model.step", folder.name, shard]


@pytest.mark.parametrize("kind", ["link", "folder", "missing", "pipe"])
async def test_only_a_regular_file_can_be_an_artifact(
    store: LocalArtifacts, tmp_path: Path, kind: str
) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    place = folder / "model.step"
    if kind == "link":
        secret = tmp_path / "secret"
        secret.write_text("secret")
        place.symlink_to(secret)
    elif kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)  # nobody writes into it: whoever opens it as a file waits for ever
    with pytest.raises(OSError, match=r"model\.step|symbolic|directory"):
        await store.keep(prefix, folder, [STEP])
    assert await store.path(f"{prefix}/model.step") is None


async def test_an_upload_is_hashed_as_it_streams_in(store: LocalArtifacts) -> None:
    key = new_id("file")
    stored = await store.receive(key, chunks(b"ab", b"", b"c"), 3)
    assert (stored.size_bytes, stored.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    path = await store.path(key)
    assert path is not None
    assert path.read_bytes() == b"abc"


async def test_an_upload_past_the_limit_leaves_nothing(store: LocalArtifacts) -> None:
    key = new_id("file")
    with pytest.raises(Refusal) as caught:
        await store.receive(key, chunks(b"ab", b"cd"), 3)
    assert caught.value.slug == "body-too-large"
    assert await store.path(key) is None
    assert list((store.root / ".tempa" / "scratch").iterdir()) == []


async def test_what_is_lent_is_a_copy(store: LocalArtifacts, tmp_path: Path) -> None:
    stored = await store.receive(new_id("file"), chunks(b"sol", b"id"), 100)
    lent = tmp_path / "lent"
    assert await store.lend(stored.key, lent)
    lent.write_bytes(b"written over")
    path = await store.path(stored.key)
    assert path is not None
    assert path.read_bytes() == b"solid"


async def test_what_is_gone_is_not_lent(store: LocalArtifacts, tmp_path: Path) -> None:
    assert not await store.lend(new_id("file"), tmp_path / "lent")
    assert not (tmp_path / "lent").exists()


async def test_what_is_shown_is_the_newest_whole(store: LocalArtifacts, tmp_path: Path) -> None:
    key, drawn = f"{new_id('splat')}.a0/live.png", tmp_path / "live.png"
    drawn.write_bytes(b"first")
    first = await store.show(key, drawn, 0)
    other = drawn.with_name("part")
    other.write_bytes(b"second")
    os.utime(other, ns=(first + 1, first + 1))
    other.replace(drawn)
    second = await store.show(key, drawn, first)

    path = await store.path(key)
    assert path is not None
    assert path.read_bytes() == b"second"
    assert second == first + 1
    await store.delete(key)
    assert await store.show(key, drawn, second) == second
    assert await store.path(key) is None  # it was shown already


@pytest.mark.parametrize("kind", ["none", "link", "folder", "large"])
async def test_what_is_no_small_file_is_not_shown(store: LocalArtifacts, tmp_path: Path, kind: str) -> None:
    """An engine's link would lead to anybody's file."""
    key, drawn, secret = f"{new_id('splat')}.a0/live.png", tmp_path / "live.png", tmp_path / "secret"
    secret.write_bytes(b"secret")
    match kind:
        case "link":
            drawn.symlink_to(secret)
        case "folder":
            drawn.mkdir()
        case "large":
            drawn.write_bytes(bytes((4 << 20) + 1))
    with contextlib.suppress(OSError):  # a link is refused by the system, and so may a folder be
        assert await store.show(key, drawn, 0) == 0
    assert await store.path(key) is None


async def test_delete_removes_and_what_is_gone_is_fine(store: LocalArtifacts) -> None:
    key = new_id("file")
    await store.receive(key, chunks(b"x"), 1)
    await store.delete(key)
    await store.delete(key)
    assert await store.path(key) is None


async def test_opening_sweeps_what_a_dead_server_left_in_scratch(store: LocalArtifacts) -> None:
    (store.scratch("cad_x.a1") / "half").write_bytes(b"half")
    store.open()
    assert list((store.root / ".tempa" / "scratch").iterdir()) == []


async def test_what_was_there_before_us_stays(tmp_path: Path) -> None:
    """The operator may point the store at a folder of his own."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "thesis.txt").write_text("years of work")
    store = LocalArtifacts(tmp_path)
    store.open()
    store.scratch("cad_x.a1")
    store.open()
    assert (tmp_path / "scratch" / "thesis.txt").read_text() == "years of work"


def test_folders_are_closed_to_others(store: LocalArtifacts) -> None:
    folders = (
        store.root,
        store.root / ".tempa",
        store.root / ".tempa" / "scratch",
        store.scratch("cad_x.a1"),
    )
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700] * 4


async def test_a_shard_that_another_writer_has_just_made_is_flushed_too(
    store: LocalArtifacts, flushed: list[str]
) -> None:
    prefix = f"{new_id('cad')}.a1"
    (store.root / prefix[4:9]).mkdir()  # by one who has not come to flush the root yet
    folder = store.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")

    (kept,) = await store.keep(prefix, folder, [STEP])

    path = await store.path(kept.key)
    assert path is not None
    assert flushed == ["model.step", prefix, "artifacts", path.parent.parent.name]


async def test_a_deletion_is_flushed_before_it_is_acknowledged(
    store: LocalArtifacts, flushed: list[str]
) -> None:
    key = new_id("file")
    await store.receive(key, chunks(b"x"), 1)
    path = await store.path(key)
    assert path is not None
    flushed.clear()
    await store.delete(key)
    assert flushed == [path.parent.name]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EROFS])
async def test_what_cannot_be_deleted_is_told(
    store: LocalArtifacts, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    (kept,) = await store.keep(prefix, folder, [STEP])
    real = os.unlink

    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(OSError, match=os.strerror(code)):
        await store.delete(prefix)
    assert await store.path(kept.key) is not None

    monkeypatch.setattr(os, "unlink", real)
    await store.delete(prefix)
    assert await store.path(kept.key) is None


async def test_two_may_delete_the_same(store: LocalArtifacts, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    for name in ("model.step", "model.stl"):
        (folder / name).write_bytes(b"x")
    await store.keep(prefix, folder, [STEP, MadeFile("model.stl", "stl", "stl", "model/stl")])
    real = shutil.rmtree

    def late(path: Path) -> None:
        monkeypatch.setattr(shutil, "rmtree", real)
        (path / "model.step").unlink()
        raise FileNotFoundError(errno.ENOENT, "the other was quicker")

    monkeypatch.setattr(shutil, "rmtree", late)
    await store.delete(prefix)
    assert await store.path(f"{prefix}/model.stl") is None


@pytest.mark.parametrize(
    "key",
    [
        "../x",
        "cad_x/../../y",
        "cad_x/",
        "/etc/passwd",
        "cad_x/.hidden",
        ".tempa/scratch",
        "cad_..",
    ],
)
async def test_no_key_leads_outside(store: LocalArtifacts, key: str) -> None:
    with pytest.raises(AssertionError):
        await store.path(key)


@pytest.mark.parametrize("whole", [True, False], ids=["with the root", "all in the root"])
async def test_what_somebody_emptied_is_made_anew(
    store: LocalArtifacts, flushed: list[str], *, whole: bool
) -> None:
    """And is as closed and as durable as at first."""
    await store.receive(new_id("file"), chunks(b"x"), 1)  # its shard counts as flushed from now on
    shutil.rmtree(store.root)
    if not whole:
        store.root.mkdir(mode=0o700)
    flushed.clear()

    prefix = f"{new_id('cad')}.a1"
    folder = store.scratch(prefix)
    (folder / "model.step").write_bytes(b"solid")
    (kept,) = await store.keep(prefix, folder, [STEP])

    path = await store.path(kept.key)
    assert path is not None
    assert path.read_bytes() == b"solid"
    shard = path.parent.parent
    assert flushed[-4:] == ["model.step", prefix, "artifacts", shard.name]
    assert (store.root.parent.name in flushed) is whole
    assert [place.stat().st_mode & 0o777 for place in (store.root, shard)] == [0o700] * 2


async def test_an_upload_needs_no_folder_to_be_there(store: LocalArtifacts) -> None:
    shutil.rmtree(store.root)
    key = new_id("file")

    await store.receive(key, chunks(b"abc"), 3)

    path = await store.path(key)
    assert path is not None
    assert path.read_bytes() == b"abc"
