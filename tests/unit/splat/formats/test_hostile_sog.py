"""Archives of .sog that lie: a ZIP of images, which are two ways to be a bomb."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.unit.splat.formats.broken import good, refused, tried


def archive(change: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good("sog"))) as before, zipfile.ZipFile(out, "w", compression) as after:
        for name in before.namelist():
            content = change.get(name, before.read(name))
            if content is not None:
                after.writestr(name, content)
    return out.getvalue()


def told() -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(good("sog"))) as archive:
        return dict(json.loads(archive.read("meta.json")))


def meta(**changes: object) -> dict[str, bytes | None]:
    return {"meta.json": json.dumps(told() | changes).encode()}


def webp(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (width, height)).save(out, "WEBP", lossless=True)
    return out.getvalue()


@pytest.mark.parametrize(
    "change",
    {
        "no meta.json": {"meta.json": None},
        "no images": {"quats.webp": None},
        "no JSON": {"meta.json": b"{"},
        "JSON all the way down": {"meta.json": b"[" * 100_000},
        "a list": {"meta.json": b"[]"},
        "version 1": meta(version=1),
        "a count too large for its images": meta(count=100_000),
        "a count beyond all bounds": meta(count=10**12),
        "a count that is true": meta(count=True),
        "no count": meta(count="40"),
        "a table too short": meta(scales={"codebook": [1.0], "files": ["scales.webp"]}),
        "a table of words": meta(sh0={"codebook": ["a"] * 256, "files": ["sh0.webp"]}),
        "numbers of a thousand digits": meta(sh0={"codebook": [10**1000] * 256, "files": ["sh0.webp"]}),
        "a name that is none": meta(quats={"files": [7]}),
        "a name outside": meta(quats={"files": ["../../etc/passwd"]}),
        "means without bounds": meta(means={"files": ["means_l.webp", "means_u.webp"]}),
        "a section that is none": meta(quats=7),
        "a palette of none": meta(shN={"count": 0, "bands": 1, "codebook": [0.0] * 256, "files": []}),
        "a palette of band 9": meta(shN={"count": 1, "bands": 9, "codebook": [0.0] * 256, "files": []}),
        "harmonics that are not in the palette": meta(shN=told()["shN"] | {"count": 1}),
        "an image that is none": {"quats.webp": b"RIFF"},
        "a PNG": {"quats.webp": b"\x89PNG\r\n\x1a\n"},
        "an image as large as WebP allows": {"quats.webp": webp(16383, 4096)},
        "rotations marked wrongly": {"quats.webp": webp(8, 8)},
    }.items(),
    ids=lambda case: case[0] if isinstance(case, tuple) else str(case)[:20],
)
def test_sog_archives_that_lie(change: tuple[str, dict[str, bytes | None]], tmp_path: Path) -> None:
    refused(archive(change[1]), tmp_path)


def test_the_sog_they_lie_about_is_in_order(tmp_path: Path) -> None:
    assert len(tried(archive({}), tmp_path)) == 40  # type: ignore[arg-type]


def test_a_zip_bomb(tmp_path: Path) -> None:
    bomb = archive({"meta.json": bytes(64 << 20)}, zipfile.ZIP_DEFLATED)

    assert refused(bomb, tmp_path).detail["size_bytes"] == 64 << 20


def test_a_zip_bomb_that_lies_about_its_size(tmp_path: Path) -> None:
    bomb = bytearray(archive({"meta.json": bytes(64 << 20)}, zipfile.ZIP_DEFLATED))
    size = struct.pack("<I", 64 << 20)
    while (at := bomb.find(size)) >= 0:
        bomb[at : at + 4] = struct.pack("<I", 1000)

    refused(bytes(bomb), tmp_path)
