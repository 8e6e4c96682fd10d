from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat import weights
from tempa.testing.fake_triposplat import safetensors

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = safetensors({"a": (2, 3), "b": (4,)})


def file(folder: Path, data: bytes) -> Path:
    (path := folder / "w.safetensors").write_bytes(data)
    return path


def with_header(header: Any, size_bytes: int = 0) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size_bytes)


def entry(begin: int, end: int, *shape: Any, dtype: str = "F16") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_a_whole_file_says_what_it_holds(tmp_path: Path) -> None:
    assert weights.look(file(tmp_path, WHOLE), "w") == weights.Header(2, 10, len(WHOLE))


def test_metadata_is_no_tensor(tmp_path: Path) -> None:
    data = with_header({"__metadata__": {"format": "pt"}, "a": entry(0, 4, 2)}, 4)
    assert weights.look(file(tmp_path, data), "w").tensors == 1


BROKEN = {
    "empty": b"",
    "cut": WHOLE[:-1],
    "longer": WHOLE + b"\0",
    "cut_header": WHOLE[:40],
    "endless_header": struct.pack("<Q", 2**63) + bytes(64),
    "no_json": with_header(b"{"),
    "deep": with_header(b"[" * 20_000),
    "a_list": with_header([]),
    "no_tensor": with_header({}),
    "gap": with_header({"a": entry(4, 8, 2)}, 8),
    "overlap": with_header({"a": entry(0, 4, 2), "b": entry(2, 6, 2)}, 6),
    "bytes_of_another_shape": with_header({"a": entry(0, 6, 2)}, 6),
    "unknown_numbers": with_header({"a": entry(0, 4, 2, dtype="F3")}, 4),
    "negative": with_header({"a": entry(0, 4, -2, -1)}, 4),
    "no_counts": with_header({"a": entry(0, 4, 2.0)}, 4),
    "no_entry": with_header({"a": 7}, 4),
    "three_offsets": with_header({"a": {"dtype": "F16", "shape": [2], "data_offsets": [0, 4, 8]}}, 4),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TempaError) as raised:
        weights.look(file(tmp_path, data), "vae/w.safetensors")
    assert raised.value.code == "MODEL_CHECKSUM_MISMATCH"
    assert "vae/w.safetensors" in raised.value.message


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_a_flipped_byte_is_refused_or_changes_numbers_alone(
    tmp_path_factory: pytest.TempPathFactory, at: int, value: int
) -> None:
    data = bytearray(WHOLE)
    data[at] = value
    code, size_bytes = None, 0
    try:
        size_bytes = weights.look(file(tmp_path_factory.getbasetemp(), bytes(data)), "w").size_bytes
    except TempaError as error:
        code = error.code
    assert (code, size_bytes) in {("MODEL_CHECKSUM_MISMATCH", 0), (None, len(WHOLE))}


def test_a_missing_file_is_another_failure(tmp_path: Path) -> None:
    for call in (weights.look, weights.sha256):
        with pytest.raises(TempaError) as raised:
            call(tmp_path / "nowhere", "w")
        assert raised.value.code == "MODEL_NOT_INSTALLED"


def test_the_pinned_file_passes(tmp_path: Path) -> None:
    weights.require(file(tmp_path, WHOLE), "w", hashlib.sha256(WHOLE).hexdigest())


def test_another_file_than_the_pinned_does_not(tmp_path: Path) -> None:
    with pytest.raises(TempaError, match="SHA-256") as raised:
        weights.require(file(tmp_path, WHOLE), "w", "0" * 64)
    assert raised.value.code == "MODEL_CHECKSUM_MISMATCH"


def test_a_file_that_nobody_pinned_does_not_either(tmp_path: Path) -> None:
    with pytest.raises(TempaError, match="not pinned"):
        weights.require(file(tmp_path, WHOLE), "w", None)
