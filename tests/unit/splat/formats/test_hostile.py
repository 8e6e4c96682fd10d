"""Files that lie or broke: every one ends in IMPORT_FAILED, or in Gaussians, and in bounded memory."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempa.core.errors import TempaError
from tempa.engines.splat.edit.keep import finite
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.broken import good, refused, tried

NAMES = [*FORMATS, "spz_4"]


@pytest.mark.parametrize("name", NAMES)
def test_cut_short_anywhere(name: str, tmp_path: Path) -> None:
    content, seen = good(name), Counter[str]()

    @settings(max_examples=120)
    @given(st.integers(0, len(content) - 1))
    def cut(size: int) -> None:
        answer = tried(content[:size], tmp_path)
        seen[answer.code if isinstance(answer, TempaError) else "read"] += 1

    cut()
    # A .splat cut at a multiple of 32 bytes is a smaller .splat; any other cut shows.
    assert set(seen) <= {"IMPORT_FAILED", "read"}
    assert seen["IMPORT_FAILED"] >= 60


@pytest.mark.parametrize("name", NAMES)
def test_bytes_flipped_anywhere(name: str, tmp_path: Path) -> None:
    content = good(name)
    # The first kilobyte holds the headers, where a lie costs most.
    place = st.integers(0, min(len(content), 1024) - 1) | st.integers(0, len(content) - 1)

    @settings(max_examples=250)
    @given(st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=6))
    def flip(changes: list[tuple[int, int]]) -> None:
        broken = bytearray(content)
        for at, value in changes:
            broken[at] = value
        answer = tried(bytes(broken), tmp_path)
        if isinstance(answer, Gaussians):
            finite(answer)
        else:
            assert answer.code == "IMPORT_FAILED"

    flip()


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_noise(noise: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        for start in (b"", b"ply\n", b"glTF", b"PK\x03\x04", b"\x1f\x8b", b"NGSP"):
            tried(start + noise, Path(place))


@pytest.mark.parametrize("name", [None, *FORMATS])
def test_an_empty_file(name: str | None, tmp_path: Path) -> None:
    assert refused(b"", tmp_path, name).detail["size_bytes"] == 0


def test_a_file_of_another_format_than_was_told(tmp_path: Path) -> None:
    assert refused(good("ply"), tmp_path, "spz").detail["expected"] == "spz"
