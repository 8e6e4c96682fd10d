"""Files of .spz that lie, bombs among them, and honest ones of other writers and versions."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import gaussforge
import numpy as np
import pytest

from tempa.engines.splat.formats import forge
from tempa.engines.splat.formats.table import COUNT_MAX
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.broken import good, of, refused, tried
from tests.unit.splat.formats.clouds import cloud


def spz(**changes: int) -> bytes:
    fields = {"magic": 0x5053474E, "version": 3, "count": 40, "degree": 0, "bits": 12} | changes
    return gzip.compress(struct.pack("<IIIBBBB", *fields.values(), 0, 0) + bytes(40 * 20))


@pytest.mark.parametrize(
    "changes",
    [{"count": 41}, {"count": 39}, {"count": 0}, {"count": 2**32 - 1}, {"count": COUNT_MAX}, {"version": 9},
     {"degree": 4}, {"bits": 60}, {"magic": 1}],
    ids=str,
)  # fmt: skip
def test_spz_headers_that_lie(changes: dict[str, int], tmp_path: Path) -> None:
    refused(spz(**changes), tmp_path, "spz")


def test_the_spz_they_lie_about_is_in_order(tmp_path: Path) -> None:
    assert len(tried(spz(), tmp_path)) == 40  # type: ignore[arg-type]


def test_an_spz_bomb(tmp_path: Path) -> None:
    """64 MiB of zeros in 64 kB, behind a header that promises 40 Gaussians."""
    raw = gzip.decompress(spz()) + bytes(64 << 20)

    assert "promised_bytes" in refused(gzip.compress(raw), tmp_path).detail


def test_spz_version_1_has_half_floats(tmp_path: Path) -> None:
    positions = np.array([[0.5, -0.25, 2.0], [1.0, 0.0, -8.0]], "<f2")
    rotations = np.array([[255, 128, 128], [128, 255, 128]], np.uint8)  # x, y, z as 127.5 (1 + q)
    parts = [positions.tobytes(), bytes([255, 0]), bytes([128] * 6), bytes([160] * 6), rotations.tobytes()]
    content = gzip.compress(struct.pack("<IIIBBBB", 0x5053474E, 1, 2, 0, 0, 0, 0) + b"".join(parts))

    found = tried(content, tmp_path)

    assert isinstance(found, Gaussians)
    assert np.array_equal(found.positions, positions.astype(np.float32))
    assert found.opacities.tolist() == [1.0, 0.0]
    assert found.scales == pytest.approx(1.0)
    assert found.rotations == pytest.approx(np.array([[0, 1, 0, 0], [0, 0, 1, 0]]), abs=0.01)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_spz_of_another_writer(version: int, tmp_path: Path) -> None:
    gaussians = cloud(300, 2)
    made = gaussforge.GaussForge().convert(of("ply", gaussians), "ply", "spz", spz_version=version)["data"]

    found = tried(made, tmp_path)

    assert isinstance(found, Gaussians)
    # It leaves a .ply's axes as they are: y and z come out turned.
    assert found.positions == pytest.approx(gaussians.positions * [1, -1, -1], abs=2.0**-13)
    assert found.colors == pytest.approx(gaussians.colors, abs=0.004)
    assert found.opacities == pytest.approx(gaussians.opacities, abs=0.003)


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [
        pytest.param(4, "<I", 5, id="version"),
        pytest.param(8, "<I", 41, id="count"),
        pytest.param(8, "<I", 0, id="no count"),
        pytest.param(12, "<B", 2, id="degree"),
        pytest.param(13, "<B", 25, id="bits"),
        pytest.param(15, "<B", 7, id="streams"),
        pytest.param(16, "<I", 2**32 - 1, id="offset"),
        pytest.param(32, "<Q", 2**40, id="packed size"),
        pytest.param(40, "<Q", 2**40, id="content size"),
    ],
)
def test_spz_4_headers_that_lie(
    offset: int, layout: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before the other reader, which is trusted with nothing, sees the file."""
    monkeypatch.setattr(forge, "read", lambda *_: pytest.fail("it was handed on"))
    content = bytearray(good("spz_4"))
    struct.pack_into(layout, content, offset, value)

    refused(bytes(content), tmp_path)
