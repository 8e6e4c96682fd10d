"""Files that lie or broke: every one ends in IMPORT_FAILED, or in Gaussians, and in bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tempfile
import tracemalloc
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path

import gaussforge
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tempa.core.errors import TempaError
from tempa.engines.splat.edit.keep import finite
from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.formats.table import COUNT_MAX, FORMATS
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.clouds import cloud

NAMES = [*FORMATS, "spz_4"]
MEMORY_MAX = 48 << 20  # of reading a file of a few kilobytes


@cache
def good(name: str) -> bytes:
    """A small file that is in order."""
    return of(name, cloud(40, 1))


def of(name: str, gaussians: Gaussians) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write("ply" if name == "spz_4" else name, gaussians, path)
        content = path.read_bytes()
    if name == "spz_4":
        return bytes(gaussforge.GaussForge().convert(content, "ply", "spz", spz_version=4)["data"])
    return content


def tried(content: bytes, folder: Path, name: str | None = None) -> Gaussians | TempaError:
    """What reading them gives; any other exception is a failed test."""
    path = folder / "file"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        return read(path, name)
    except TempaError as error:
        return error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY_MAX, f"{peak} bytes"


def refused(content: bytes, folder: Path, name: str | None = None) -> TempaError:
    answer = tried(content, folder, name)
    assert isinstance(answer, TempaError), "it was read"
    assert answer.code == "IMPORT_FAILED"
    assert answer.detail, "it does not say where"
    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.mark.parametrize("name", NAMES)
def test_cut_short_anywhere(name: str, folder: Path) -> None:
    content, seen = good(name), Counter[str]()

    @settings(max_examples=120)
    @given(st.integers(0, len(content) - 1))
    def cut(size: int) -> None:
        answer = tried(content[:size], folder)
        seen[answer.code if isinstance(answer, TempaError) else "read"] += 1

    cut()
    # A .splat cut at a multiple of 32 bytes is a smaller .splat; any other cut shows.
    assert set(seen) <= {"IMPORT_FAILED", "read"}
    assert seen["IMPORT_FAILED"] >= 60


@pytest.mark.parametrize("name", NAMES)
def test_bytes_flipped_anywhere(name: str, folder: Path) -> None:
    content = good(name)
    # The first kilobyte holds the headers, where a lie costs most.
    place = st.integers(0, min(len(content), 1024) - 1) | st.integers(0, len(content) - 1)

    @settings(max_examples=250)
    @given(st.lists(st.tuples(place, st.integers(0, 255)), min_size=1, max_size=6))
    def flip(changes: list[tuple[int, int]]) -> None:
        broken = bytearray(content)
        for at, value in changes:
            broken[at] = value
        answer = tried(bytes(broken), folder)
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
def test_an_empty_file(name: str | None, folder: Path) -> None:
    assert refused(b"", folder, name).detail["size_bytes"] == 0


def test_a_file_of_another_format_than_was_told(folder: Path) -> None:
    assert refused(good("ply"), folder, "spz").detail["expected"] == "spz"


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
def test_ply_headers_that_lie(old: str, new: str, told: str, folder: Path) -> None:
    error = refused(in_ply(old, new), folder)

    assert told in error.detail


def test_ply_big_endian_and_double_are_read(folder: Path) -> None:
    gaussians = cloud(7)
    head, _, body = of("ply", gaussians).partition(b"end_header\n")
    turned = np.frombuffer(body, "<f4").astype(">f8").tobytes()
    head = head.replace(b"little", b"big").replace(b"property float", b"property double")

    found = tried(head + b"end_header\n" + turned, folder)

    assert isinstance(found, Gaussians)
    assert found.positions == pytest.approx(gaussians.positions)


def test_ply_elements_before_the_vertices_are_passed_over(folder: Path) -> None:
    gaussians = cloud(7)
    content = of("ply", gaussians).replace(
        b"element vertex", b"element camera 2\nproperty double focus\nelement vertex"
    )
    content = content.replace(b"end_header\n", b"end_header\n" + bytes(16))

    found = tried(content, folder)

    assert isinstance(found, Gaussians)
    assert np.array_equal(found.positions, gaussians.positions)


def test_nan_and_infinity_are_read_and_filtered(folder: Path) -> None:
    content = bytearray(of("ply", cloud(5)))
    row = content.index(b"end_header\n") + 11
    content[row : row + 4] = struct.pack("<f", np.nan)  # x of the first
    content[row + 68 + 40 : row + 68 + 44] = struct.pack("<f", 500.0)  # scale_0 of the second: e^500
    content[row + 136 + 52 : row + 136 + 68] = bytes(16)  # rotation of the third: no direction

    found = tried(bytes(content), folder)

    assert isinstance(found, Gaussians)
    assert len(finite(found)) == 2


def test_a_flat_gaussian_is_read_as_very_thin(folder: Path) -> None:
    content = bytearray(of("ply", cloud(1)))
    row = content.index(b"end_header\n") + 11
    content[row + 40 : row + 44] = struct.pack("<f", -np.inf)

    found = tried(bytes(content), folder)

    assert isinstance(found, Gaussians)
    assert found.scales.min() > 0
    assert len(finite(found)) == 1


def spz(**changes: int) -> bytes:
    fields = {"magic": 0x5053474E, "version": 3, "count": 40, "degree": 0, "bits": 12} | changes
    return gzip.compress(struct.pack("<IIIBBBB", *fields.values(), 0, 0) + bytes(40 * 20))


@pytest.mark.parametrize(
    "changes",
    [{"count": 41}, {"count": 39}, {"count": 0}, {"count": 2**32 - 1}, {"count": COUNT_MAX}, {"version": 9},
     {"degree": 4}, {"bits": 60}, {"magic": 1}],
    ids=str,
)  # fmt: skip
def test_spz_headers_that_lie(changes: dict[str, int], folder: Path) -> None:
    refused(spz(**changes), folder, "spz")


def test_the_spz_they_lie_about_is_in_order(folder: Path) -> None:
    assert len(tried(spz(), folder)) == 40  # type: ignore[arg-type]


def test_an_spz_bomb(folder: Path) -> None:
    """64 MiB of zeros in 64 kB, behind a header that promises 40 Gaussians."""
    raw = gzip.decompress(spz()) + bytes(64 << 20)

    assert "promised_bytes" in refused(gzip.compress(raw), folder).detail


def test_spz_version_1_has_half_floats(folder: Path) -> None:
    positions = np.array([[0.5, -0.25, 2.0], [1.0, 0.0, -8.0]], "<f2")
    rotations = np.array([[255, 128, 128], [128, 255, 128]], np.uint8)  # x, y, z as 127.5 (1 + q)
    parts = [positions.tobytes(), bytes([255, 0]), bytes([128] * 6), bytes([160] * 6), rotations.tobytes()]
    content = gzip.compress(struct.pack("<IIIBBBB", 0x5053474E, 1, 2, 0, 0, 0, 0) + b"".join(parts))

    found = tried(content, folder)

    assert isinstance(found, Gaussians)
    assert np.array_equal(found.positions, positions.astype(np.float32))
    assert found.opacities.tolist() == [1.0, 0.0]
    assert found.scales == pytest.approx(1.0)
    assert found.rotations == pytest.approx(np.array([[0, 1, 0, 0], [0, 0, 1, 0]]), abs=0.01)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_spz_of_another_writer(version: int, folder: Path) -> None:
    gaussians = cloud(300, 2)
    made = gaussforge.GaussForge().convert(of("ply", gaussians), "ply", "spz", spz_version=version)["data"]

    found = tried(made, folder)

    assert isinstance(found, Gaussians)
    # It leaves a .ply's axes as they are: y and z come out turned.
    assert found.positions == pytest.approx(gaussians.positions * [1, -1, -1], abs=2.0**-13)
    assert found.colors == pytest.approx(gaussians.colors, abs=0.004)
    assert found.opacities == pytest.approx(gaussians.opacities, abs=0.003)


def archive(change: dict[str, bytes | None], compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good("sog"))) as before, zipfile.ZipFile(out, "w", compression) as after:
        for name in before.namelist():
            content = change.get(name, before.read(name))
            if content is not None:
                after.writestr(name, content)
    return out.getvalue()


def meta(**changes: object) -> dict[str, bytes | None]:
    with zipfile.ZipFile(io.BytesIO(good("sog"))) as before:
        told = json.loads(before.read("meta.json"))
    return {"meta.json": json.dumps(told | changes).encode()}


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
        "an image that is none": {"quats.webp": b"RIFF"},
        "a PNG": {"quats.webp": b"\x89PNG\r\n\x1a\n"},
        "an image as large as WebP allows": {"quats.webp": webp(16383, 4096)},
        "rotations marked wrongly": {"quats.webp": webp(8, 8)},
    }.items(),
    ids=lambda case: case[0] if isinstance(case, tuple) else str(case)[:20],
)
def test_sog_archives_that_lie(change: tuple[str, dict[str, bytes | None]], folder: Path) -> None:
    refused(archive(change[1]), folder)


def test_the_sog_they_lie_about_is_in_order(folder: Path) -> None:
    assert len(tried(archive({}), folder)) == 40  # type: ignore[arg-type]


def test_a_zip_bomb(folder: Path) -> None:
    bomb = archive({"meta.json": bytes(64 << 20)}, zipfile.ZIP_DEFLATED)

    assert refused(bomb, folder).detail["size_bytes"] == 64 << 20


def test_a_zip_bomb_that_lies_about_its_size(folder: Path) -> None:
    bomb = bytearray(archive({"meta.json": bytes(64 << 20)}, zipfile.ZIP_DEFLATED))
    size = struct.pack("<I", 64 << 20)
    while (at := bomb.find(size)) >= 0:
        bomb[at : at + 4] = struct.pack("<I", 1000)

    refused(bytes(bomb), folder)


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
def test_glb_documents_that_lie(place: str, value: object, folder: Path) -> None:
    refused(glb({place: value}), folder)


def test_the_glb_they_lie_about_is_in_order(folder: Path) -> None:
    assert len(tried(glb({}), folder)) == 40  # type: ignore[arg-type]


def test_glb_attributes_of_normalised_integers_are_read(folder: Path) -> None:
    """Opacities as bytes: the same numbers as COLOR_0's alpha, told by another accessor with a stride."""
    change = {
        "accessors.4": {"bufferView": 1, "componentType": 5121, "normalized": True, "count": 40,
                        "type": "SCALAR", "byteOffset": 3},
        "bufferViews.1.byteStride": 4,
    }  # fmt: skip

    found = tried(glb(change), folder)

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
def test_ksplat_headers_that_lie(offset: int, layout: str, value: int, folder: Path) -> None:
    answer = tried(ksplat(offset, layout, value), folder, "ksplat")

    # Room for more than there is at the end is no lie: a viewer's own files have it.
    assert isinstance(answer, TempaError) or offset in {4100, 4096 + 12, 4096 + 36}


def test_compressed_ply_with_too_few_blocks(folder: Path) -> None:
    content = good("compressed_ply").replace(b"element chunk 1", b"element chunk 0")

    assert refused(content, folder).detail["blocks"] == 0


def test_an_old_compressed_ply_has_no_bounds_for_colours(folder: Path) -> None:
    """Files of before 2024 have 12 values a block; their colours are bytes from 0 to 1."""
    head, _, body = of("compressed_ply", cloud(9)).partition(b"end_header\n")
    for name in ("min_r", "min_g", "min_b", "max_r", "max_g", "max_b"):
        head = head.replace(f"property float {name}\n".encode(), b"")
    vertices = bytearray(body[72:])
    vertices[12:16] = struct.pack("<I", 0xFF_80_00_40)  # red, half green, no blue, a quarter opaque

    found = tried(head + b"end_header\n" + body[:48] + bytes(vertices), folder)

    assert isinstance(found, Gaussians)
    assert found.colors[0] == pytest.approx([1.0, 128 / 255, 0.0], abs=1e-5)
    assert found.opacities[0] == pytest.approx(64 / 255)
