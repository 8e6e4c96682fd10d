"""Documents of .glb and headers of .ksplat that lie."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.broken import good, refused, tried
from tests.unit.splat.formats.clouds import cloud


def glb(change: dict[str, object]) -> bytes:
    """With entries of its document changed: `accessors.0.count` names one."""
    content = good("glb")
    (size,) = struct.unpack_from("<I", content, 12)
    document = json.loads(content[20 : 20 + size])
    for place, value in change.items():
        *way, last = [int(step) if step.isdigit() else step for step in place.split(".")]
        entry = document
        for step in way:
            entry = entry[step]
        entry[last] = value
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    rest = content[20 + size :]
    return struct.pack("<4sIII4s", b"glTF", 2, 20 + len(text) + len(rest), len(text), b"JSON") + text + rest


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("accessors.0.count", 10**12),
        ("accessors.0.count", 41),
        ("accessors.2.count", 39),
        ("accessors.0.count", -1),
        ("accessors.0.count", 1.5),
        ("accessors.0.count", True),
        ("accessors.0.type", "VEC2"),
        ("accessors.0.componentType", 5125),
        ("accessors.0.bufferView", 99),
        ("accessors.0.bufferView", -1),
        ("accessors.0.byteOffset", 2**39),
        ("accessors.0.sparse", {}),
        ("accessors", 7),
        ("bufferViews.0.buffer", 1),
        ("bufferViews.0.byteLength", 2**39),
        ("bufferViews.0.byteOffset", 2**39),
        ("bufferViews.0.byteStride", 1),
        ("bufferViews.0.byteStride", 10**9),
        ("meshes", []),
        ("meshes", [[]]),
        ("meshes.0.primitives", "x"),
        ("meshes.0.primitives.0.extensions", {}),
        ("meshes.0.primitives.0.attributes", []),
        ("meshes.0.primitives.0.attributes.POSITION", "0"),
        ("nodes.0.matrix", [1] * 16),
    ],
    ids=str,
)
def test_glb_documents_that_lie(place: str, value: object, tmp_path: Path) -> None:
    refused(glb({place: value}), tmp_path)


def test_the_glb_they_lie_about_is_in_order(tmp_path: Path) -> None:
    assert len(tried(glb({}), tmp_path)) == 40  # type: ignore[arg-type]


def test_glb_attributes_of_normalised_integers_are_read(tmp_path: Path) -> None:
    """Opacities as bytes: the same numbers as COLOR_0's alpha, told by another accessor with a stride."""
    change = {
        "accessors.4": {"bufferView": 1, "componentType": 5121, "normalized": True, "count": 40,
                        "type": "SCALAR", "byteOffset": 3},
        "bufferViews.1.byteStride": 4,
    }  # fmt: skip

    found = tried(glb(change), tmp_path)

    assert isinstance(found, Gaussians)
    assert found.opacities == pytest.approx(cloud(40, 1).opacities, abs=0.003)


def ksplat(offset: int, layout: str, value: int) -> bytes:
    content = bytearray(good("ksplat"))
    struct.pack_into(layout, content, offset, value)
    return bytes(content)


@pytest.mark.parametrize(
    ("offset", "layout", "value"),
    [
        (0, "<B", 1), (4, "<I", 0), (4, "<I", 2**32 - 1), (16, "<I", 41), (16, "<I", 2**32 - 1),
        (20, "<H", 1), (20, "<H", 7), (4096, "<I", 41), (4100, "<I", 2**32 - 1),
        (4096 + 40, "<H", 2), (4096 + 40, "<H", 9),
        (4096 + 12, "<I", 2**32 - 1), (4096 + 36, "<I", 2**32 - 1),
    ],
    ids=str,
)  # fmt: skip
def test_ksplat_headers_that_lie(offset: int, layout: str, value: int, tmp_path: Path) -> None:
    answer = tried(ksplat(offset, layout, value), tmp_path, "ksplat")

    # Room for more than there is at the end is no lie: a viewer's own files have it.
    assert isinstance(answer, TempaError) or offset in {4100, 4096 + 12, 4096 + 36}


def test_a_ksplat_section_that_overflows(tmp_path: Path) -> None:
    """It has room for 39, and holds 40."""
    answer = refused(ksplat(4096 + 4, "<I", 39), tmp_path, "ksplat")

    assert answer.detail == {"count": 40}
