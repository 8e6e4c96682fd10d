"""What is stored, page by page, for whoever looks for bytes without an owner."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tempa.core.ids import new_id

if TYPE_CHECKING:
    from pathlib import Path

    from tempa.adapters.artifacts.local import LocalArtifacts

HOUR = 3600.0


def put(store: LocalArtifacts, prefix: str, age_seconds: float, shard: str | None = None) -> Path:
    """Bytes under a prefix, last written so long ago."""
    folder = store.root / (prefix[-26:][:5] if shard is None else shard)
    folder.mkdir(exist_ok=True)
    place = folder / prefix
    place.write_bytes(b"x")
    written = time.time() - age_seconds
    os.utime(place, (written, written))
    return place


def upload(shard: str, number: int) -> str:
    return f"file_{shard}{number:021}"


async def test_only_what_was_written_long_ago_is_listed(store: LocalArtifacts) -> None:
    """Prefixes of attempts and of uploads; of attempts it is the folder that counts."""
    attempt = new_id("cad") + ".a12"
    folder = store.scratch(attempt)
    await store.keep(attempt, folder, [])
    put(store, old := new_id("file"), HOUR + 60)
    put(store, new_id("file"), HOUR - 60)
    fresh = await store.aged(HOUR, "", 10)

    (kept,) = store.root.glob(f"*/{attempt}")
    os.utime(kept, (0, 0))

    assert fresh == [old]
    assert sorted(await store.aged(HOUR, "", 10)) == sorted([attempt, old])


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
async def test_pages_go_through_all_of_it_once(store: LocalArtifacts, limit: int) -> None:
    stored = [upload(shard, number) for shard in ("00001", "0000z", "00010") for number in range(3)]
    for prefix in reversed(stored):
        put(store, prefix, 2 * HOUR)

    seen: list[str] = []
    while page := await store.aged(HOUR, seen[-1] if seen else "", limit):
        assert len(page) <= limit
        seen += page

    assert seen == stored


async def test_going_on_behind_what_is_gone_meanwhile_misses_nothing(store: LocalArtifacts) -> None:
    stored = [upload("00001", number) for number in range(4)]
    for prefix in stored:
        put(store, prefix, 2 * HOUR)
    first = await store.aged(HOUR, "", 2)
    for prefix in first:
        await store.delete(prefix)

    assert first + await store.aged(HOUR, first[-1], 10) == stored


async def test_files_of_the_operator_are_never_listed(store: LocalArtifacts) -> None:
    put(store, "thesis.txt", 2 * HOUR, shard="years")
    put(store, "file_short", 2 * HOUR, shard="short")
    put(store, upload("00001", 1) + ".bak", 2 * HOUR, shard="00001")
    put(store, upload("00001", 2), 2 * HOUR, shard="other")  # not where we would have put it
    (store.root / "notes").write_text("years of work")

    assert await store.aged(HOUR, "", 10) == []


async def test_a_root_that_is_gone_holds_nothing(store: LocalArtifacts) -> None:
    (store.root / ".tempa" / "scratch").rmdir()
    (store.root / ".tempa").rmdir()
    store.root.rmdir()

    assert await store.aged(HOUR, "", 10) == []
