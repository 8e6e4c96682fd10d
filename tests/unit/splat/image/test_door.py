"""What the door reads of a header, against Pillow as the second reader, and what it refuses."""

from __future__ import annotations

import importlib.util
import io
import struct
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pillow_heif
import pytest
from PIL import Image

from tempa.core.errors import CODES
from tempa.core.limits import Limits
from tempa.engines.splat.image import door
from tempa.engines.splat.image.facts import Bounds, Facts, Fault
from tests.unit.splat.image.samples import saved, written

if TYPE_CHECKING:
    from pathlib import Path

SIZE = (130, 97)
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "png": ("png", "RGB", {}),
    "png-alpha": ("png", "RGBA", {}),
    "png-grey-alpha": ("png", "LA", {}),
    "png-key": ("png", "P", {"transparency": 3}),
    "jpeg": ("jpeg", "RGB", {}),
    "jpeg-progressive": ("jpeg", "RGB", {"progressive": True}),
    "jpeg-exif": ("jpeg", "RGB", {"exif": b"Exif\0\0" + bytes(60_000)}),
    "webp": ("webp", "RGB", {}),
    "webp-alpha": ("webp", "RGBA", {}),
    "webp-lossless": ("webp", "RGB", {"lossless": True}),
    "webp-lossless-alpha": ("webp", "RGBA", {"lossless": True}),
    "webp-profile": ("webp", "RGB", {"icc_profile": bytes(500)}),
    "avif": ("avif", "RGB", {}),
    "avif-alpha": ("avif", "RGBA", {}),
    "tiff": ("tiff", "RGB", {}),
    "tiff-alpha": ("tiff", "RGBA", {}),
    "tiff-lzw": ("tiff", "L", {"compression": "tiff_lzw"}),
    "tiff-big-endian": ("tiff", "I;16B", {}),
}


def look(tmp_path: Path, data: bytes, bounds: Bounds | None = None, **how: Any) -> Facts | Fault:
    return door.look(written(tmp_path / "no-extension", data), bounds, **how)


def refusal(tmp_path: Path, data: bytes, bounds: Bounds | None = None, **how: Any) -> Fault:
    fault = look(tmp_path, data, bounds, **how)
    assert isinstance(fault, Fault)
    assert fault.code in CODES
    return fault


@pytest.mark.parametrize("kind", KINDS)
def test_the_header_says_what_pillow_finds(tmp_path: Path, kind: str) -> None:
    form, mode, how = KINDS[kind]
    data = saved(Image.new(mode, SIZE, 1), form, **how)
    with Image.open(io.BytesIO(data)) as other:
        alpha = other.has_transparency_data
        assert look(tmp_path, data) == Facts(form, *other.size, has_alpha=alpha)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_heic_too_where_it_is_read(tmp_path: Path, mode: str) -> None:
    file = io.BytesIO()
    pillow_heif.from_pillow(Image.new(mode, (128, 192))).save(file)
    assert look(tmp_path, file.getvalue()) == Facts("heic", 128, 192, has_alpha=mode == "RGBA")


def test_heic_is_refused_where_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    pillow_heif.from_pillow(Image.new("RGB", SIZE)).save(file)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(door, "find_spec", lambda _: None)
    fault = refusal(tmp_path, file.getvalue())
    assert (fault.code, "tempa[heic]" in str(fault.hint)) == ("IMAGE_FORMAT_UNSUPPORTED", True)
    assert "HEIC" not in refusal(tmp_path, b"GIF89a").message


@pytest.mark.parametrize("form", ["png", "webp", "avif"])
def test_an_animation_needs_a_choice(tmp_path: Path, form: str) -> None:
    frames = [Image.new("RGB", SIZE, (90 * n, 0, 0)) for n in range(3)]
    data = saved(frames[0], form, save_all=True, append_images=frames[1:])
    fault = refusal(tmp_path, data)
    assert (fault.code, '"frame": 0' in str(fault.hint)) == ("IMAGE_FORMAT_UNSUPPORTED", True)
    assert look(tmp_path, data, frame=0) == Facts(form, *SIZE, animated=True)  # type: ignore[arg-type]


def test_one_frame_is_no_animation(tmp_path: Path) -> None:
    data = saved(Image.new("RGB", SIZE), "webp", save_all=True)
    assert isinstance(look(tmp_path, data), Facts)


def test_a_still_may_have_a_first_frame(tmp_path: Path) -> None:
    assert isinstance(look(tmp_path, saved(Image.new("RGB", SIZE), "png"), frame=0), Facts)


@pytest.mark.parametrize(
    ("size", "code", "limit", "actual"),
    [
        ((63, 200), "IMAGE_TOO_SMALL", 64, 63),
        ((2, 4000), "IMAGE_TOO_SMALL", 64, 2),
        ((100, 801), "IMAGE_ASPECT_RATIO", 8.0, 8.01),
        ((900, 100), "IMAGE_ASPECT_RATIO", 8.0, 9.0),
        ((1001, 1000), "IMAGE_TOO_LARGE", 1_000_000, 1_001_000),
    ],
)
def test_a_size_is_refused_with_limit_and_actual(
    tmp_path: Path, size: tuple[int, int], code: str, limit: float, actual: float
) -> None:
    fault = refusal(tmp_path, saved(Image.new("L", size), "png"), Bounds(pixels_max=1_000_000))
    assert (fault.code, fault.limit, fault.actual) == (code, limit, actual)


@pytest.mark.parametrize("size", [(64, 64), (64, 512), (512, 64), (1000, 1000)])
def test_at_its_limits_a_size_is_taken(tmp_path: Path, size: tuple[int, int]) -> None:
    data = saved(Image.new("L", size), "png")
    assert isinstance(look(tmp_path, data, Bounds(pixels_max=1_000_000)), Facts)


def test_bytes_are_counted_first(tmp_path: Path) -> None:
    fault = refusal(tmp_path, bytes(101), Bounds(bytes_max=100))
    assert (fault.code, fault.limit, fault.actual) == ("IMAGE_TOO_LARGE", 100, 101)


def test_the_servers_limits_are_in_bytes_and_millions_of_pixels() -> None:
    assert Bounds.of(Limits(image_bytes=2048, image_megapixels=3)) == Bounds(2048, 3_000_000)
    assert Bounds() == Bounds(32 * 1024 * 1024, 64_000_000)


def test_what_takes_more_memory_to_decode_may_have_fewer_pixels(tmp_path: Path) -> None:
    data = bytearray(saved(Image.new("RGB", SIZE), "webp"))
    at = data.index(b"\x9d\x01\x2a") + 3
    data[at : at + 4] = struct.pack("<HH", 5800, 5800)  # 33.6 megapixels
    fault = refusal(tmp_path, bytes(data))
    assert (fault.code, fault.limit) == ("IMAGE_TOO_LARGE", 512 * 1024 * 1024 // 16)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"GIF89a" + bytes(40), "GIF"),
        (b"%PDF-1.4\n", "PDF"),
        (b'\n <svg xmlns="x"/>', "SVG"),
        (b"\xef\xbb\xbf<?XML ?>", "XML"),
        (b"II+\0", "BigTIFF"),
        (b"hello, world", "no known picture format"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "MPEG"),
    ],
)
def test_what_else_it_is_is_said(tmp_path: Path, data: bytes, what: str) -> None:
    fault = refusal(tmp_path, data)
    assert (fault.code, what in fault.message) == ("IMAGE_FORMAT_UNSUPPORTED", True)


@pytest.mark.parametrize("data", [b"ply\nformat ascii 1.0\n", b"ply\r\nformat", b"glTF\2\0\0\0"])
def test_a_model_in_place_of_a_picture_is_told_where_it_belongs(tmp_path: Path, data: bytes) -> None:
    fault = refusal(tmp_path, data)
    assert fault.code == "IMAGE_FORMAT_UNSUPPORTED"
    assert "mesh-splat" in (fault.hint or "")


def test_the_name_says_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "picture.jpg", saved(Image.new("RGB", SIZE), "png"))
    facts = door.look(path)
    assert isinstance(facts, Facts)
    assert facts.format == "png"


def test_nothing_at_all_is_unreadable(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"").code == "IMAGE_UNREADABLE"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "-" not in kind])
def test_cut_within_its_header_it_is_unreadable(tmp_path: Path, kind: str) -> None:
    form, mode, how = KINDS[kind]
    data = saved(Image.new(mode, SIZE), form, **how)
    assert {refusal(tmp_path, data[:size]).code for size in range(16, 26)} == {"IMAGE_UNREADABLE"}


def test_a_file_that_is_not_there_is_not_the_pictures_fault(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        door.look(tmp_path / "gone")


def test_a_fault_fails_a_job_with_its_numbers() -> None:
    error = Fault("IMAGE_TOO_SMALL", "too small", 64, 2, "larger").error()
    assert (error.code, error.message, error.hint) == ("IMAGE_TOO_SMALL", "too small", "larger")
    assert (error.detail, error.retryable) == ({"limit": 64, "actual": 2}, False)


def test_the_door_loads_no_library() -> None:
    script = "import sys; import tempa.engines.splat.image.door; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert not {"PIL", "numpy", "scipy", "pillow_heif"} & set(process.stdout.split())
