"""Headers of .ply files that lie, and honest ones that few programs write."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tempa.engines.splat.edit.keep import finite
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.broken import good, of, refused, tried
from tests.unit.splat.formats.clouds import cloud


def in_ply(old: str, new: str) -> bytes:
    content = good("ply")
    assert content.count(old.encode()) == 1
    return content.replace(old.encode(), new.encode())


@pytest.mark.parametrize(
    ("old", "new", "told"),
    {
        "a million million": ("element vertex 40", "element vertex 1000000000000", "limit"),
        "one too many": ("element vertex 40", "element vertex 41", "needs_bytes"),
        "less than none": ("element vertex 40", "element vertex -40", "line"),
        "none": ("element vertex 40", "element vertex 0", "count"),
        "a number of a thousand digits": ("element vertex 40", f"element vertex {'9' * 1000}", "line"),
        "text": ("binary_little_endian", "ascii", "format"),
        "no format": ("format binary_little_endian 1.0\n", "", "lines"),
        "no opacity": ("property float opacity", "property float transparency", "missing_properties"),
        "an opacity twice": ("property float nx", "property float opacity", "element"),
        "a list": ("property float nx", "property list uchar int nx", "line"),
        "an unknown type": ("property float nx", "property quad nx", "line"),
        "harmonics of no degree": ("property float f_rest_8", "property float rest_8", "f_rest_properties"),
        "harmonics misnumbered": ("float f_rest_8\n", "float f_rest_9\n", "missing_properties"),
        "no vertices": ("element vertex", "element point", "elements"),
        "no end": ("end_header", "end_heade", "looked_at_bytes"),
    }.values(),
)  # fmt: skip
def test_ply_headers_that_lie(old: str, new: str, told: str, tmp_path: Path) -> None:
    error = refused(in_ply(old, new), tmp_path)

    assert told in error.detail


def test_ply_big_endian_and_double_are_read(tmp_path: Path) -> None:
    gaussians = cloud(7)
    head, _, body = of("ply", gaussians).partition(b"end_header\n")
    turned = np.frombuffer(body, "<f4").astype(">f8").tobytes()
    head = head.replace(b"little", b"big").replace(b"property float", b"property double")

    found = tried(head + b"end_header\n" + turned, tmp_path)

    assert isinstance(found, Gaussians)
    assert found.positions == pytest.approx(gaussians.positions)


def test_ply_elements_before_the_vertices_are_passed_over(tmp_path: Path) -> None:
    gaussians = cloud(7)
    content = of("ply", gaussians).replace(
        b"element vertex", b"element camera 2\nproperty double focus\nelement vertex"
    )
    content = content.replace(b"end_header\n", b"end_header\n" + bytes(16))

    found = tried(content, tmp_path)

    assert isinstance(found, Gaussians)
    assert np.array_equal(found.positions, gaussians.positions)


def test_nan_and_infinity_are_read_and_filtered(tmp_path: Path) -> None:
    content = bytearray(of("ply", cloud(5)))
    row = content.index(b"end_header\n") + 11
    content[row : row + 4] = struct.pack("<f", np.nan)  # x of the first
    content[row + 68 + 40 : row + 68 + 44] = struct.pack("<f", 500.0)  # scale_0 of the second: e^500
    content[row + 136 + 52 : row + 136 + 68] = bytes(16)  # rotation of the third: no direction

    found = tried(bytes(content), tmp_path)

    assert isinstance(found, Gaussians)
    assert len(finite(found)) == 2


def test_a_flat_gaussian_is_read_as_very_thin(tmp_path: Path) -> None:
    content = bytearray(of("ply", cloud(1)))
    row = content.index(b"end_header\n") + 11
    content[row + 40 : row + 44] = struct.pack("<f", -np.inf)

    found = tried(bytes(content), tmp_path)

    assert isinstance(found, Gaussians)
    assert found.scales.min() > 0
    assert len(finite(found)) == 1


def test_a_rotation_as_small_as_float32_has_a_direction(tmp_path: Path) -> None:
    """Readers of the format take any length; the squares of these are nought in float32."""
    content = bytearray(of("ply", cloud(1)))
    row = content.index(b"end_header\n") + 11
    content[row + 52 : row + 68] = struct.pack("<4f", 3e-30, 0.0, 0.0, 4e-30)

    found = tried(bytes(content), tmp_path)

    assert isinstance(found, Gaussians)
    assert found.rotations[0] == pytest.approx([0.6, 0.0, 0.0, -0.8])


def test_compressed_ply_with_too_few_blocks(tmp_path: Path) -> None:
    content = good("compressed_ply").replace(b"element chunk 1", b"element chunk 0")

    assert refused(content, tmp_path).detail["blocks"] == 0


def test_an_old_compressed_ply_has_no_bounds_for_colours(tmp_path: Path) -> None:
    """Files of before 2024 have 12 values a block; their colours are bytes from 0 to 1."""
    head, _, body = of("compressed_ply", cloud(9)).partition(b"end_header\n")
    for name in ("min_r", "min_g", "min_b", "max_r", "max_g", "max_b"):
        head = head.replace(f"property float {name}\n".encode(), b"")
    vertices = bytearray(body[72:])
    vertices[12:16] = struct.pack("<I", 0xFF_80_00_40)  # red, half green, no blue, a quarter opaque

    found = tried(head + b"end_header\n" + body[:48] + bytes(vertices), tmp_path)

    assert isinstance(found, Gaussians)
    assert found.colors[0] == pytest.approx([1.0, 128 / 255, 0.0], abs=1e-5)
    assert found.opacities[0] == pytest.approx(64 / 255)
