"""Copies of what was kept: as durable as the originals, and apart from them."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from tempa.core.ids import new_id
from tempa.jobs.ports import MadeFile

if TYPE_CHECKING:
    from tempa.adapters.artifacts.local import LocalArtifacts
    from tempa.jobs.model import StoredArtifact

CONTENTS = {"model.step": b"solid", "model.stl": b"facets"}


@pytest.fixture
async def kept(store: LocalArtifacts) -> tuple[StoredArtifact, ...]:
    """Two files of one job."""
    prefix = a_prefix()
    folder = store.scratch(prefix)
    for name, content in CONTENTS.items():
        (folder / name).write_bytes(content)
    return await store.keep(prefix, folder, [MadeFile(name, name, "x", "model/x") for name in CONTENTS])


def a_prefix() -> str:
    return f"{new_id('cad')}.a1"


async def contents(store: LocalArtifacts, artifacts: tuple[StoredArtifact, ...] | None) -> dict[str, bytes]:
    """What lies under the artifacts' keys, by name."""
    assert artifacts is not None
    paths = {one.name: await store.path(one.key) for one in artifacts}
    return {name: path.read_bytes() for name, path in paths.items() if path is not None}


def refuse_links(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", refuse)


async def test_a_copy_differs_in_its_place_only(
    store: LocalArtifacts, kept: tuple[StoredArtifact, ...]
) -> None:
    prefix = a_prefix()
    copied = await store.copy(prefix, kept)

    assert copied is not None
    assert [one.key for one in copied] == [f"{prefix}/model.step", f"{prefix}/model.stl"]
    assert [(one.name, one.role, one.size_bytes, one.sha256) for one in copied] == [
        (one.name, one.role, one.size_bytes, one.sha256) for one in kept
    ]
    assert await contents(store, copied) == CONTENTS
    assert list((store.root / ".tempa" / "scratch").iterdir()) == []


async def test_a_copy_takes_no_room(store: LocalArtifacts, kept: tuple[StoredArtifact, ...]) -> None:
    copied = await store.copy(a_prefix(), kept)

    assert copied is not None
    for original, copy in zip(kept, copied, strict=True):
        one, other = await store.path(original.key), await store.path(copy.key)
        assert one is not None
        assert other is not None
        assert one.samefile(other)


@pytest.mark.parametrize("first_to_go", ["original", "copy"])
async def test_deleting_one_leaves_the_other(
    store: LocalArtifacts, kept: tuple[StoredArtifact, ...], first_to_go: str
) -> None:
    copied = await store.copy(a_prefix(), kept)
    assert copied is not None
    gone, left = (kept, copied) if first_to_go == "original" else (copied, kept)

    await store.delete(gone[0].key.partition("/")[0])

    assert await contents(store, gone) == {}
    assert await contents(store, left) == CONTENTS


@pytest.mark.parametrize("code", [None, errno.EXDEV])
@pytest.mark.parametrize("missing", ["model.step", "model.stl"])
async def test_nothing_is_copied_when_a_file_is_gone(
    store: LocalArtifacts,
    kept: tuple[StoredArtifact, ...],
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    code: int | None,
) -> None:
    if code is not None:
        refuse_links(monkeypatch, code)
    await store.delete(next(one.key for one in kept if one.name == missing))
    prefix = a_prefix()

    assert await store.copy(prefix, kept) is None

    assert await store.path(f"{prefix}/model.step") is None
    assert await store.path(f"{prefix}/model.stl") is None
    assert list((store.root / ".tempa" / "scratch").iterdir()) == []


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
async def test_where_there_can_be_no_link_the_bytes_are_copied_and_flushed(
    store: LocalArtifacts,
    kept: tuple[StoredArtifact, ...],
    monkeypatch: pytest.MonkeyPatch,
    flushed: list[str],
    code: int,
) -> None:
    refuse_links(monkeypatch, code)
    prefix = a_prefix()

    copied = await store.copy(prefix, kept)

    assert await contents(store, copied) == CONTENTS
    assert flushed[:3] == ["model.step", "model.stl", prefix]


async def test_the_new_names_are_flushed_before_copy_returns(
    store: LocalArtifacts, kept: tuple[StoredArtifact, ...], flushed: list[str]
) -> None:
    prefix = kept[0].key.partition(".")[0] + ".a2"  # the same shard: it is there and flushed already

    copied = await store.copy(prefix, kept)

    assert copied is not None
    path = await store.path(copied[0].key)
    assert path is not None
    assert flushed == [prefix, path.parent.parent.name]


async def test_a_disk_that_is_full_is_no_missing_file(
    store: LocalArtifacts, kept: tuple[StoredArtifact, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_links(monkeypatch, errno.ENOSPC)

    with pytest.raises(OSError, match="No space left"):
        await store.copy(a_prefix(), kept)

    assert list((store.root / ".tempa" / "scratch").iterdir()) == []
