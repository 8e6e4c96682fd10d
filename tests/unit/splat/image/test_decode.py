"""Pixels of every kind of file, against values known from the formats' definitions."""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageCms

from tempa.core.errors import TempaError
from tempa.engines.splat.image import decode, door, intake
from tempa.engines.splat.image.facts import Bounds, Facts
from tests.unit.splat.image.samples import disc, saved, written

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

W, H = 80, 72


def pixels(tmp_path: Path, data: bytes, *, frame: int | None = None) -> NDArray[np.uint8]:
    path = written(tmp_path / "image", data)
    facts = door.look(path, frame=frame)
    assert isinstance(facts, Facts), facts
    return decode.decode(path, facts, Bounds())


def ramp(steps: int = 256) -> NDArray[np.uint16]:
    """From left to right, evenly from 0 to steps - 1."""
    line = np.linspace(0, steps - 1, W).round().astype(np.uint16)
    return np.repeat(line[None], H, axis=0)


def quadrants() -> Image.Image:
    """Red, green; blue, white: no turn or mirroring leaves it as it is."""
    image = Image.new("RGB", (W, H), "white")
    image.paste((255, 0, 0), (0, 0, W // 2, H // 2))
    image.paste((0, 255, 0), (W // 2, 0, W, H // 2))
    image.paste((0, 0, 255), (0, H // 2, W // 2, H))
    return image


def corners(rgba: NDArray[np.uint8]) -> str:
    """The colours of the corners by their letters: top left, top right, bottom left, bottom right."""
    letters = {(True, False, False): "r", (False, True, False): "g", (False, False, True): "b"}
    height, width = rgba.shape[:2]
    at = [(y, x) for y in (4, height - 5) for x in (4, width - 5)]
    return "".join(letters.get(tuple(channel > 128 for channel in rgba[y, x, :3]), "w") for y, x in at)


def png(color: int, depth: int, rows: NDArray[Any], *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG from its samples (height, width, channels), for the kinds that Pillow does not write."""
    height, width = rows.shape[:2]
    lines = rows.astype(f">u{depth // 8}").reshape(height, -1)
    packed = zlib.compress(b"".join(b"\0" + line.tobytes() for line in lines))
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    parts = [(b"IHDR", head), *chunks, (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


@pytest.mark.parametrize("form", ["png", "tiff", "webp"])
def test_plain_colors_come_as_they_are(tmp_path: Path, form: str) -> None:
    data = disc(96)
    how = {"lossless": True} if form == "webp" else {}
    rgba = pixels(tmp_path, saved(Image.fromarray(data).convert("RGB"), form, **how))
    assert (rgba == data).all()


@pytest.mark.parametrize("form", ["png", "tiff", "webp"])
def test_straight_alpha_comes_as_it_is_with_the_colors_under_it(tmp_path: Path, form: str) -> None:
    data = disc(96)
    data[..., 3] = np.arange(96)
    how = {"lossless": True, "exact": True} if form == "webp" else {}
    assert (pixels(tmp_path, saved(Image.fromarray(data), form, **how)) == data).all()


@pytest.mark.parametrize("form", ["jpeg", "avif", "heic"])
def test_lossy_colors_come_close(tmp_path: Path, form: str) -> None:
    image = Image.fromarray(disc(96)).convert("RGB")
    if form == "heic":
        file = io.BytesIO()
        pillow_heif.from_pillow(image).save(file, quality=90)
        data = file.getvalue()
    else:
        data = saved(image, form, quality=90)
    off = pixels(tmp_path, data)[..., :3].astype(int) - np.asarray(image, int)
    assert np.sqrt(np.mean(off**2)) < 6


def test_sixteen_bits_of_grey_become_eight(tmp_path: Path) -> None:
    grey = pixels(tmp_path, saved(Image.fromarray(ramp(65536)), "png"))
    assert (grey[..., 0] == np.rint(ramp(65536) / 257.0)).all()
    assert (grey[..., 3] == 255).all()


def test_sixteen_bits_of_grey_from_a_big_endian_tiff(tmp_path: Path) -> None:
    image = Image.frombytes("I;16B", (W, H), ramp(65536).astype(">u2").tobytes())
    assert (pixels(tmp_path, saved(image, "tiff"))[..., 1] == np.rint(ramp(65536) / 257.0)).all()


def test_sixteen_bits_of_color_become_eight(tmp_path: Path) -> None:
    deep = np.stack([ramp(65536), 65535 - ramp(65536), ramp(65536) // 2], axis=2)
    rgb = pixels(tmp_path, png(2, 16, deep))[..., :3]
    assert np.abs(rgb - deep / 257.0).max() < 1


def test_sixteen_bits_of_color_and_alpha_become_eight(tmp_path: Path) -> None:
    deep = np.stack([ramp(65536), 65535 - ramp(65536), ramp(65536) // 2, ramp(65536)], axis=2)
    assert np.abs(pixels(tmp_path, png(6, 16, deep)) - deep / 257.0).max() < 1


def test_a_key_among_sixteen_bits_of_grey_is_clear(tmp_path: Path) -> None:
    grey = ramp(65536)
    data = png(0, 16, grey[..., None], (b"tRNS", struct.pack(">H", int(grey[0, 5]))))
    alpha = pixels(tmp_path, data)[..., 3]
    assert (alpha[:, 5] == 0).all()
    assert (np.delete(alpha, 5, axis=1) == 255).all()


def test_a_key_color_is_clear(tmp_path: Path) -> None:
    image = quadrants()
    alpha = pixels(tmp_path, saved(image, "png", transparency=(0, 0, 255)))[..., 3]
    assert (alpha == np.where((np.asarray(image) == (0, 0, 255)).all(axis=2), 0, 255)).all()


def test_a_palettes_alphas_count(tmp_path: Path) -> None:
    image = Image.new("P", (W, H), 1)
    image.putpalette([0, 0, 0, 10, 20, 30, 40, 50, 60])
    image.paste(2, (0, 0, W // 2, H))
    rgba = pixels(tmp_path, saved(image, "png", transparency=bytes([255, 255, 77])))
    assert rgba[0, 0].tolist() == [40, 50, 60, 77]
    assert rgba[0, -1].tolist() == [10, 20, 30, 255]


def test_grey_with_alpha_keeps_both(tmp_path: Path) -> None:
    image = Image.new("LA", (W, H), (90, 33))
    assert pixels(tmp_path, saved(image, "png"))[3, 3].tolist() == [90, 90, 90, 33]


def test_one_bit_is_black_or_white(tmp_path: Path) -> None:
    image = Image.new("1", (W, H), 0)
    image.paste(1, (0, 0, W // 2, H))
    rgba = pixels(tmp_path, saved(image, "png"))
    assert (rgba[0, 0].tolist(), rgba[0, -1].tolist()) == ([255] * 4, [0, 0, 0, 255])


@pytest.mark.parametrize("mode", ["F", "I"])
def test_samples_of_no_known_range_are_refused(tmp_path: Path, mode: str) -> None:
    with pytest.raises(TempaError) as caught:
        pixels(tmp_path, saved(Image.new(mode, (W, H)), "tiff"))
    assert caught.value.code == "IMAGE_FORMAT_UNSUPPORTED"


_TURNS = {1: "rgbw", 2: "grwb", 3: "wbgr", 4: "bwrg", 5: "rbgw", 6: "brwg", 7: "wgbr", 8: "gwrb"}


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "tiff", "avif"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_it_upright(tmp_path: Path, form: str, orientation: int) -> None:
    """By the table of the EXIF standard: where row 0 and column 0 of what is stored belong."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    rgba = pixels(tmp_path, saved(quadrants(), form, exif=exif))
    assert corners(rgba) == _TURNS[orientation]
    assert rgba.shape[:2] == ((H, W) if orientation < 5 else (W, H))


def test_heic_is_turned_once(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    pillow_heif.from_pillow(quadrants()).save(file, quality=90, exif=exif.tobytes())
    upright = corners(pixels(tmp_path, file.getvalue()))
    pillow_heif.register_heif_opener()
    with Image.open(io.BytesIO(file.getvalue())) as other:  # the plug-in's own reading
        assert upright == corners(np.asarray(other.convert("RGBA")))


def test_cmyk_without_a_profile_is_ink_on_white(tmp_path: Path) -> None:
    image = Image.new("CMYK", (W, H), (0, 0, 0, 0))
    image.paste((255, 0, 0, 0), (0, 0, W // 2, H))
    rgba = pixels(tmp_path, saved(image, "tiff"))
    assert rgba[0, -1].tolist() == [255, 255, 255, 255]
    assert rgba[0, 0].tolist() == [0, 255, 255, 255]


def swapped_profile() -> bytes:
    """A real profile whose red primary is sRGB's green and the other way round: plain to see."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    count = int.from_bytes(data[128:132], "big")
    places = {bytes(data[at : at + 4]): at for at in range(132, 132 + 12 * count, 12)}
    red, green = places[b"rXYZ"], places[b"gXYZ"]
    data[red + 4 : red + 12], data[green + 4 : green + 12] = (
        data[green + 4 : green + 12],
        data[red + 4 : red + 12],
    )
    return bytes(data)


@pytest.mark.parametrize("form", ["png", "jpeg", "webp", "tiff", "avif", "heic"])
def test_colors_are_matched_by_the_profile(tmp_path: Path, form: str) -> None:
    image = Image.new("RGB", (W, H), (200, 40, 90))
    if form == "heic":
        file = io.BytesIO()
        image.info["icc_profile"] = swapped_profile()
        pillow_heif.from_pillow(image).save(file, quality=95)
        data = file.getvalue()
    else:
        data = saved(image, form, icc_profile=swapped_profile(), quality=95)
    assert pixels(tmp_path, data)[9, 9, :3].tolist() == pytest.approx((40, 200, 90), abs=4)


def test_a_profile_leaves_alpha_alone(tmp_path: Path) -> None:
    image = Image.new("RGBA", (W, H), (200, 40, 90, 77))
    rgba = pixels(tmp_path, saved(image, "png", icc_profile=swapped_profile()))
    assert rgba[9, 9].tolist() == pytest.approx((40, 200, 90, 77), abs=2)


def test_srgbs_own_profile_changes_nothing(tmp_path: Path) -> None:
    data = disc(96)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    rgba = pixels(tmp_path, saved(Image.fromarray(data).convert("RGB"), "png", icc_profile=profile))
    assert np.abs(rgba.astype(int) - data).max() <= 1


@pytest.mark.parametrize("profile", [b"nonsense" * 30, bytes(128)])
def test_a_broken_profile_is_passed_over(tmp_path: Path, profile: bytes) -> None:
    image = Image.new("RGB", (W, H), (200, 40, 90))
    assert pixels(tmp_path, saved(image, "png", icc_profile=profile))[9, 9].tolist() == [200, 40, 90, 255]


def test_a_profile_for_other_colors_is_passed_over(tmp_path: Path) -> None:
    image = Image.new("CMYK", (W, H), (255, 0, 0, 0))
    data = saved(image, "tiff", icc_profile=swapped_profile())
    assert pixels(tmp_path, data)[9, 9].tolist() == [0, 255, 255, 255]


@pytest.mark.parametrize(
    ("form", "mode"), [("png", "RGB"), ("png", "RGBA"), ("jpeg", "RGB"), ("tiff", "CMYK"), ("png", "L")]
)
def test_a_large_picture_becomes_2048_long(tmp_path: Path, form: str, mode: str) -> None:
    image = Image.new("RGB", (5000, 1250), (30, 60, 90))
    image.paste((200, 150, 100), (0, 0, 2500, 1250))
    rgba = pixels(tmp_path, saved(image.convert(mode), form))
    assert rgba.shape == (512, 2048, 4)
    expected = np.asarray(image.convert(mode).convert("RGB"))
    for column in (100, 1900):
        assert rgba[256, column, :3].tolist() == pytest.approx(
            expected[600, column * 5000 // 2048].tolist(), abs=2
        )


def test_a_small_picture_keeps_its_size(tmp_path: Path) -> None:
    assert pixels(tmp_path, saved(Image.new("L", (2048, 300)), "png")).shape == (300, 2048, 4)


def test_made_smaller_clear_pixels_give_no_color(tmp_path: Path) -> None:
    image = Image.new("RGBA", (4100, 600), (255, 0, 0, 0))
    image.paste((0, 0, 255, 255), (0, 0, 2049, 600))
    rgba = pixels(tmp_path, saved(image, "png"))
    told = rgba[rgba[..., 3] > 8, :3].astype(int)
    assert np.abs(told - (0, 0, 255)).max() <= 8


def test_made_smaller_a_picture_stays_where_it_is(tmp_path: Path) -> None:
    """Its centre of mass, in shares of its size; 4999 is no multiple of anything."""
    y, x = np.mgrid[:977, :4999]
    grey = np.where((x - 3000) ** 2 + (y - 400) ** 2 < 300**2, 255, 0).astype(np.uint8)
    rgba = pixels(tmp_path, saved(Image.fromarray(grey), "png"))
    rows, columns = np.mgrid[: rgba.shape[0], : rgba.shape[1]]
    mass = rgba[..., 0] / rgba[..., 0].sum(dtype=float)
    assert (mass * (columns + 0.5)).sum() / rgba.shape[1] == pytest.approx(3000.5 / 4999, abs=3e-5)
    assert (mass * (rows + 0.5)).sum() / rgba.shape[0] == pytest.approx(400.5 / 977, abs=1e-4)


@pytest.mark.parametrize("form", ["png", "webp", "avif"])
def test_of_an_animation_it_is_the_first_frame(tmp_path: Path, form: str) -> None:
    frames = [Image.new("RGB", (W, H), color) for color in ("red", "lime", "blue")]
    how = {"lossless": True} if form == "webp" else {}
    data = saved(frames[0], form, save_all=True, append_images=frames[1:], **how)
    assert pixels(tmp_path, data, frame=0)[9, 9].tolist() == pytest.approx((255, 0, 0, 255), abs=4)


@pytest.mark.parametrize("form", ["png", "jpeg", "webp", "avif", "tiff", "heic"])
def test_cut_off_it_is_unreadable(tmp_path: Path, form: str) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (H, W, 3), np.uint8))
    if form == "heic":
        file = io.BytesIO()
        pillow_heif.from_pillow(noise).save(file)
        data = file.getvalue()
    else:
        data = saved(noise, form)
    with pytest.raises(TempaError) as caught:
        pixels(tmp_path, data[: len(data) * 3 // 4])
    assert (caught.value.code, caught.value.retryable) == ("IMAGE_UNREADABLE", False)
    assert caught.value.hint
    assert "PIL" not in caught.value.message


def test_pixels_that_the_header_did_not_show_are_too_many(tmp_path: Path) -> None:
    path = written(tmp_path / "image", saved(Image.new("RGB", (W, H)), "png"))
    with pytest.raises(TempaError) as caught:
        decode.decode(path, Facts("png", 8, 8), Bounds(pixels_max=W * H - 1))
    assert caught.value.code == "IMAGE_TOO_LARGE"


def test_pillows_own_limit_is_as_before(tmp_path: Path) -> None:
    before, filters = Image.MAX_IMAGE_PIXELS, list(warnings.filters)
    pixels(tmp_path, saved(Image.new("RGB", (W, H)), "png"))
    assert (Image.MAX_IMAGE_PIXELS, list(warnings.filters)) == (before, filters)


def test_a_picture_is_read_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "image", saved(Image.fromarray(disc()), "png"))
    picture = intake.read(path, {"mask": "auto", "frame": None, "num_gaussians": 9})
    assert (picture.mask, picture.width, picture.height) == ("border-flood", 200, 200)
    assert picture.source == Facts("png", 200, 200, has_alpha=True)


def test_a_picture_that_the_door_refuses_is_refused_here(tmp_path: Path) -> None:
    with pytest.raises(TempaError) as caught:
        intake.read(written(tmp_path / "image", b"GIF89a"), {})
    assert caught.value.code == "IMAGE_FORMAT_UNSUPPORTED"


def test_the_tolerance_is_a_parameter(tmp_path: Path) -> None:
    path = written(tmp_path / "image", saved(Image.fromarray(disc(color=(195, 198, 202))), "png"))
    assert intake.read(path, {"flood_tolerance": 5.0}).mask == "border-flood"
    with pytest.raises(TempaError) as caught:
        intake.read(path, {"flood_tolerance": 20.0})
    assert caught.value.code == "NO_FOREGROUND"
