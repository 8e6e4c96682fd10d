"""Pictures that mean harm, or are cut, flipped and bent: nearly three hundred, always the same.

Each has a name, its bytes and what must become of it: the codes of which one must come, "read" among them
where a reader may well make something of it.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pillow_heif
from PIL import Image, PngImagePlugin

if TYPE_CHECKING:
    from collections.abc import Iterator

READ = "read"
UNREADABLE = "IMAGE_UNREADABLE"
UNSUPPORTED = "IMAGE_FORMAT_UNSUPPORTED"
TOO_LARGE = "IMAGE_TOO_LARGE"
TOO_SMALL = "IMAGE_TOO_SMALL"
ASPECT = "IMAGE_ASPECT_RATIO"
NO_FOREGROUND = "NO_FOREGROUND"
NO_MASK = "MASK_PROVIDER_UNAVAILABLE"
ANY_CODE = (UNREADABLE, UNSUPPORTED, TOO_LARGE, TOO_SMALL, ASPECT, NO_FOREGROUND, NO_MASK, "OUT_OF_MEMORY")
BENT = (READ, *ANY_CODE)  # a flipped bit may do no harm at all

_FORMATS = ("png", "jpeg", "webp", "avif", "tiff", "heic")
_BLOCK_BYTES = 1 << 20
_PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Hostile:
    name: str
    data: bytes
    codes: tuple[str, ...]


@cache
def corpus() -> tuple[Hostile, ...]:
    """All of them."""
    pictures = (
        *_cut(),
        *_flipped(),
        *_bombs(),
        *_odd_sizes(),
        *_odd_modes(),
        *_clear(),
        *_animations(),
        *_png_chunks(),
        *_jpeg_segments(),
        *_tiff_directories(),
        *_boxes(),
        *_not_pictures(),
    )
    names = [picture.name for picture in pictures]
    assert len(set(names)) == len(names), "two pictures of one name"
    return pictures


def picture(width: int = 120, height: int = 100, mode: str = "RGB") -> Image.Image:
    """A dark disc before a plain wall, with a little texture; as RGBA, the wall is clear."""
    y, x = np.mgrid[:height, :width]
    inside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (0.3 * min(width, height)) ** 2
    disc = np.stack([60 + x % 7, 40 + y % 5, 90 + (x + y) % 9], axis=2)
    pixels = np.where(inside[..., None], disc, (225, 228, 232)).astype(np.uint8)
    if mode != "RGBA":
        return Image.fromarray(pixels).convert(mode)
    return Image.fromarray(np.dstack([pixels, np.where(inside, 255, 0).astype(np.uint8)]))


def saved(image: Image.Image, form: str, **how: Any) -> bytes:
    """Its bytes in a format."""
    file = io.BytesIO()
    if form == "heic":
        pillow_heif.from_pillow(image).save(file, quality=60)
    else:
        image.save(file, form, **how)
    return file.getvalue()


@cache
def good(form: str) -> bytes:
    """A sound file of a format."""
    return saved(picture(mode="RGBA" if form in {"png", "webp", "avif"} else "RGB"), form)


def _cut() -> Iterator[Hostile]:
    """Cut off at many places. What ends in the pixels' last bytes may still be read: browsers do so."""
    for form in _FORMATS:
        data = good(form)
        for share in (0.002, 0.01, 0.04, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9):
            size = max(1, int(share * len(data)))
            codes = (UNREADABLE, UNSUPPORTED) if size < 12 else (UNREADABLE,)
            yield Hostile(f"{form}-cut-at-{share}", data[:size], codes)
        yield Hostile(f"{form}-without-its-last-bytes", data[:-3], BENT)


def _flipped() -> Iterator[Hostile]:
    dice = random.Random(5)
    for form in _FORMATS:
        for number in range(10):
            data = bytearray(good(form))
            for _ in range(1 + number):
                data[dice.randrange(4, min(len(data), 600))] ^= 1 << dice.randrange(8)
            yield Hostile(f"{form}-bits-flipped-{number}", bytes(data), BENT)


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes, depth: int = 8, color: int = 2, lace: int = 0) -> bytes:
    """A PNG of these chunks between its header and its end."""
    head = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, lace))
    return _PNG + head + b"".join(chunks) + png_chunk(b"IEND", b"")


def zeros(size: int) -> bytes:
    """`size` zero bytes as zlib packs them, a thousand times smaller: one packed block, over and over.

    Their Adler checksum is known without them: each adds 1, which stays the low sum, to the high one.
    """
    block, left = divmod(size, _BLOCK_BYTES)
    packed = _packed_zeros(_BLOCK_BYTES) * block + _packed_zeros(left)
    return b"\x78\x01" + packed + b"\x03\0" + struct.pack(">HH", size % 65521, 1)


@cache
def _packed_zeros(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(bytes(size)) + packer.flush(zlib.Z_FULL_FLUSH)


def _pixels_of_zeros(width: int, height: int, bytes_per_pixel: int = 3) -> bytes:
    return png_chunk(b"IDAT", zeros(height * (1 + width * bytes_per_pixel)))


def _bombs() -> Iterator[Hostile]:
    """Sizes in a header: the format's own maximum, just beyond the limit, and within it but for nothing."""
    for side in (40_000, 12_000, 8_001):
        yield Hostile(f"png-says-{side}", png(side, side, png_chunk(b"IDAT", zeros(1000))), (TOO_LARGE,))
        yield Hostile(f"jpeg-says-{side}", _jpeg_of(side, side), (TOO_LARGE,))
        yield Hostile(f"tiff-says-{side}", tiff({256: side, 257: side}), (TOO_LARGE,))
        yield Hostile(f"avif-says-{side}", _resized("avif", side, side), (TOO_LARGE,))
        yield Hostile(f"heic-says-{side}", _resized("heic", side, side), (TOO_LARGE,))
    yield Hostile("png-says-2^31", png(2**31 - 1, 2**31 - 1, png_chunk(b"IDAT", b"")), (TOO_LARGE,))
    yield Hostile("avif-says-2^32", _resized("avif", 2**32 - 1, 2**32 - 1), (TOO_LARGE,))
    yield Hostile("jpeg-says-65535", _jpeg_of(65535, 65535), (TOO_LARGE,))
    yield Hostile("webp-says-16384", _webp_of(16384, 16384), (TOO_LARGE,))
    yield Hostile("webp-lossless-says-16384", _lossless_of(16384, 16384), (TOO_LARGE,))
    yield Hostile("webp-canvas-says-2^24", _canvas_of(2**24, 2**24), (TOO_LARGE,))
    deep = png(7900, 7900, _pixels_of_zeros(7900, 7900, 8), depth=16, color=6)
    yield Hostile("png-of-62-megapixels-deep", deep, (NO_FOREGROUND,))
    yield Hostile("png-says-much-has-little", png(7900, 7900, png_chunk(b"IDAT", zeros(1000))), (UNREADABLE,))
    much = png(100, 100, png_chunk(b"IDAT", zeros(200_000_000)))
    yield Hostile("png-says-little-has-much", much, (NO_FOREGROUND, UNREADABLE))
    yield Hostile("jpeg-of-62-megapixels-without-pixels", _jpeg_of(7900, 7900), (UNREADABLE, NO_FOREGROUND))
    yield Hostile("avif-says-less-than-it-has", _resized("avif", 64, 64), BENT)
    yield Hostile("avif-says-more-than-it-has", _resized("avif", 5000, 5000), BENT)
    yield Hostile("heic-says-more-than-it-has", _resized("heic", 5000, 5000), BENT)
    yield Hostile("webp-canvas-around-another", _canvas_of(5000, 5000), (UNREADABLE,))


def _jpeg_of(width: int, height: int) -> bytes:
    """A sound JPEG whose frame says another size."""
    data = bytearray(good("jpeg"))
    at = data.index(b"\xff\xc0")
    struct.pack_into(">HH", data, at + 5, height, width)
    return bytes(data)


def _webp_of(width: int, height: int) -> bytes:
    data = bytearray(saved(picture(), "webp"))
    at = data.index(b"\x9d\x01\x2a")
    struct.pack_into("<HH", data, at + 3, width & 0x3FFF or 0x3FFF, height & 0x3FFF or 0x3FFF)
    return bytes(data)


def _lossless_of(width: int, height: int) -> bytes:
    data = bytearray(saved(picture(), "webp", lossless=True))
    struct.pack_into("<I", data, data.index(b"VP8L") + 9, (width - 1) | (height - 1) << 14)
    return bytes(data)


def _canvas_of(width: int, height: int) -> bytes:
    """An extended WebP: a sound picture on a canvas that says another size."""
    inner = saved(picture(), "webp")[12:]
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + bytes(4) + sizes + inner
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _resized(form: str, width: int, height: int) -> bytes:
    """A sound AVIF or HEIC whose size properties say another size."""
    data = bytearray(good(form))
    at = data.find(b"ispe")
    while at >= 0:
        struct.pack_into(">II", data, at + 8, width, height)
        at = data.find(b"ispe", at + 4)
    return bytes(data)


def _odd_sizes() -> Iterator[Hostile]:
    for form in _FORMATS:
        yield Hostile(f"{form}-1x1", saved(picture(1, 1), form), (TOO_SMALL,))
        strip = (TOO_SMALL, ASPECT) if form == "heic" else (TOO_SMALL,)  # HEIC is padded to 64
        yield Hostile(f"{form}-2x4000", saved(picture(2, 4000), form), strip)
        yield Hostile(f"{form}-4000x2", saved(picture(4000, 2), form), strip)
        yield Hostile(f"{form}-64x600", saved(picture(64, 600), form), (ASPECT,))
    yield Hostile("png-0x0", png(0, 0), (UNREADABLE,))
    yield Hostile("jpeg-height-0", _jpeg_of(100, 0), (UNREADABLE,))
    yield Hostile("tiff-0x100", tiff({256: 0, 257: 100}), (UNREADABLE,))


def _odd_modes() -> Iterator[Hostile]:
    for mode in ("1", "L", "LA", "P", "I;16"):
        image = _deep() if mode == "I;16" else _in_mode(mode)
        yield Hostile(f"png-mode-{mode}", saved(image, "png"), (READ,))
    for mode in ("1", "L", "LA", "P", "CMYK", "YCbCr", "LAB", "F", "I"):
        codes = (UNSUPPORTED,) if mode in {"F", "I"} else (READ,)
        yield Hostile(f"tiff-mode-{mode}", saved(_in_mode(mode), "tiff"), codes)
    yield Hostile("jpeg-mode-CMYK", saved(picture(mode="CMYK"), "jpeg"), (READ,))
    yield Hostile("jpeg-mode-L", saved(picture(mode="L"), "jpeg", progressive=True), (READ,))
    for form, profile in (("png", b"\x00" * 200), ("jpeg", b"nonsense" * 99), ("tiff", b"acsp" * 64)):
        data = saved(picture(), form, icc_profile=profile)
        yield Hostile(f"{form}-profile-of-nonsense", data, (READ,))


def _in_mode(mode: str) -> Image.Image:
    if mode == "P":
        return picture().quantize(64)  # convert() would dither the wall
    if mode == "LAB":
        return Image.merge("LAB", picture(mode="YCbCr").split())
    return picture().convert("L").convert(mode) if mode in {"F", "I"} else picture(mode=mode)


def _deep() -> Image.Image:
    return Image.fromarray(np.asarray(picture(mode="L"), np.uint16) * 257)


def _clear() -> Iterator[Hostile]:
    blank = Image.new("RGBA", (100, 100), (255, 0, 0, 0))
    for form in ("png", "webp", "avif", "tiff", "heic"):
        yield Hostile(f"{form}-transparent", saved(blank, form), (NO_FOREGROUND,))
    speck = blank.copy()
    speck.paste((0, 0, 0, 255), (50, 50, 52, 52))
    yield Hostile("png-a-speck", saved(speck, "png"), (NO_FOREGROUND,))
    keyed = Image.new("P", (100, 100), 3)
    yield Hostile("png-one-clear-color", saved(keyed, "png", transparency=3), (NO_FOREGROUND,))
    for color in ("white", "black"):
        yield Hostile(f"png-all-{color}", saved(Image.new("RGB", (100, 100), color), "png"), (NO_FOREGROUND,))
    noise = np.random.default_rng(1).integers(0, 256, (200, 200, 3), np.uint8)
    yield Hostile("png-noise", saved(Image.fromarray(noise), "png"), (NO_MASK,))


def _animations() -> Iterator[Hostile]:
    frames = [Image.new("RGB", (100, 100), (9 * n, 99, 200)) for n in range(5)]
    for form in ("png", "webp", "avif", "gif"):
        data = saved(frames[0], form, save_all=True, append_images=frames[1:], duration=40)
        yield Hostile(f"{form}-animation", data, (UNSUPPORTED,))
    many = png_chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0))
    yield Hostile("png-2^31-frames", png(100, 100, many, _pixels_of_zeros(100, 100)), (UNSUPPORTED,))


def _png_chunks() -> Iterator[Hostile]:
    pixels = _pixels_of_zeros(100, 100)
    text = png_chunk(b"zTXt", b"Comment\0\0" + zeros(200_000_000))
    international = png_chunk(b"iTXt", b"Comment\0\x01\0\0\0" + zeros(200_000_000))
    profile = png_chunk(b"iCCP", b"profile\0\0" + zeros(200_000_000))
    codes = (UNREADABLE, NO_FOREGROUND)
    yield Hostile("png-text-bomb", png(100, 100, text, pixels), codes)
    yield Hostile("png-many-text-bombs", png(100, 100, *[text] * 20, pixels), codes)
    yield Hostile("png-international-text-bomb", png(100, 100, international, pixels), codes)
    yield Hostile("png-profile-bomb", png(100, 100, profile, pixels), codes)
    empty = png_chunk(b"tEXt", b"a\0")
    yield Hostile("png-100000-chunks", png(100, 100, *[empty] * 100_000, pixels), (UNREADABLE,))
    yield Hostile("png-100000-chunks-behind", png(100, 100, pixels, *[empty] * 100_000), codes)
    yield Hostile("png-pixels-in-100000-pieces", _in_pieces(), (READ, *codes))
    yield Hostile("png-chunk-of-2^31", _PNG + good("png")[8:33] + b"\x7f\xff\xff\xfftEXt", (UNREADABLE,))
    yield Hostile("png-no-pixels", png(100, 100), (UNREADABLE,))
    yield Hostile("png-no-palette", png(100, 100, _pixels_of_zeros(100, 100, 1), color=3), (*codes, READ))
    yield Hostile("png-depth-3", png(100, 100, pixels, depth=3), (UNREADABLE,))
    yield Hostile("png-laced", png(100, 100, pixels, lace=1), codes)
    wrong = bytearray(png(100, 100, pixels))
    wrong[29] ^= 1
    yield Hostile("png-wrong-checksum", bytes(wrong), (UNREADABLE,))
    info = PngImagePlugin.PngInfo()
    info.add_text("Raw profile type exif", "\nexif\n 9999\n" + "zz" * 9999)
    yield Hostile("png-exif-of-nonsense", saved(picture(), "png", pnginfo=info), (READ,))


def _in_pieces() -> bytes:
    data = zlib.compress(np.random.default_rng(3).bytes(100 * 301), 0)
    return png(100, 100, *(png_chunk(b"IDAT", data[at : at + 1]) for at in range(len(data))))


def jpeg_segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def _jpeg_segments() -> Iterator[Hostile]:
    head, rest = good("jpeg")[:2], good("jpeg")[2:]
    exif = b"Exif\0\0"
    directory = b"MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12\0\x03\xff\xff\xff\xff\0\0\0\0" * 5000
    circle = b"MM\0*\0\0\0\x08\0\x01\x87\x69\0\x04\0\0\0\x01\0\0\0\x08\0\0\0\x08"
    for name, data in (
        ("exif-of-nonsense", exif + b"nonsense" * 100),
        ("exif-of-65535-entries", exif + directory),
        ("exif-that-holds-itself", exif + circle),
        ("orientation-99", exif + b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0\0\0\0\0"),
    ):
        yield Hostile(f"jpeg-{name}", head + jpeg_segment(0xE1, data[:65000]) + rest, (READ,))
    comments = jpeg_segment(0xFE, bytes(65_000)) * 400
    yield Hostile("jpeg-26-MB-of-comments", head + comments + rest, (READ,))
    yield Hostile("jpeg-5000-segments", head + jpeg_segment(0xFE, b"") * 5000 + rest, (UNREADABLE,))
    yield Hostile("jpeg-filled", head + b"\xff" * 100_000 + rest, (UNREADABLE,))
    profile = b"ICC_PROFILE\0" + bytes([1, 255]) + bytes(60_000)
    yield Hostile("jpeg-profile-in-255-pieces", head + jpeg_segment(0xE2, profile) * 255 + rest, (READ,))
    multiple = b"MPF\0MM\0*\0\0\0\x08\0\x01\xb0\x01\0\x04\0\0\0\x01\xff\xff\xff\xff\0\0\0\0"
    yield Hostile("jpeg-2^32-pictures", head + jpeg_segment(0xE2, multiple) + rest, (READ, UNREADABLE))
    yield Hostile("jpeg-segment-of-length-0", head + b"\xff\xe0\0\0" + rest, (UNREADABLE,))
    yield Hostile("jpeg-ends-at-once", head + b"\xff\xd9", (UNREADABLE,))
    yield Hostile("jpeg-scans", _scans(), (READ, UNREADABLE))


def _scans() -> bytes:
    """A progressive JPEG that is refined a thousand times: each scan costs a pass over the picture."""
    data = saved(picture(1200, 1000), "jpeg", progressive=True)
    at = data.rindex(b"\xff\xda")
    return data[:at] + data[at:-2] * 1000 + data[-2:]


def tiff(tags: dict[int, int], *, after: bytes = b"", count: int | None = None) -> bytes:
    """A TIFF of one directory of 32-bit numbers, with `count` entries, if it is to lie."""
    usual = {258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 2**31, 279: 100}
    entries = sorted((usual | tags).items())
    packed = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(entries) if count is None else count)
    return head + packed + bytes(4) + after


def _tiff_directories() -> Iterator[Hostile]:
    size = {256: 100, 257: 100}
    body = bytes(20_000)
    for name, data, codes in (
        ("directory-beyond-the-file", b"II*\0\xff\xff\xff\x7f", (UNREADABLE,)),
        ("no-entries", tiff(size, count=0), (UNREADABLE,)),
        ("65535-entries", tiff(size, count=65535), (UNREADABLE,)),
        ("no-size", tiff({}), (UNREADABLE,)),
        ("pixels-beyond-the-file", tiff(size | {273: 2**31}), (UNREADABLE,)),
        ("2^32-rows-a-strip", tiff(size | {278: 2**32 - 1}, after=body), BENT),
        ("0-rows-a-strip", tiff(size | {278: 0}, after=body), BENT),
        ("65535-samples", tiff(size | {277: 65535}, after=body), (UNSUPPORTED,)),
        ("0-samples", tiff(size | {277: 0}, after=body), (UNSUPPORTED,)),
        ("7-bits", tiff(size | {258: 7}, after=body), (UNREADABLE,)),
        ("old-jpeg", tiff(size | {259: 6}, after=body), (UNSUPPORTED,)),
        ("unknown-compression", tiff(size | {259: 999}, after=body), (UNSUPPORTED,)),
        ("lzw-of-zeros", tiff(size | {259: 5}, after=body), BENT),
        ("a-strip-of-61-MB", tiff({256: 7900, 257: 7900, 259: 8}, after=zeros(62_410_000)), BENT),
        ("a-strip-of-187-MB", tiff({256: 7900, 257: 7900, 259: 8, 277: 3}, after=body), (TOO_LARGE,)),
        ("a-tile-of-2^62", tiff(size | {259: 8, 322: 2**31, 323: 2**31}, after=body), (TOO_LARGE,)),
        ("a-circle", tiff(size, after=body)[:-4] + struct.pack("<I", 8), BENT),
    ):
        yield Hostile(f"tiff-{name}", data, codes)
    packed = saved(Image.new("RGBA", (7900, 7900)), "tiff", compression="tiff_adobe_deflate")
    yield Hostile("tiff-of-62-megapixels", packed, (NO_FOREGROUND,))
    strips = saved(picture(200, 4 * 200), "tiff", compression="tiff_lzw", strip_size=1)
    yield Hostile("tiff-a-strip-a-row", strips, (READ,))
    pages = [picture()] * 50
    yield Hostile("tiff-50-pages", saved(pages[0], "tiff", save_all=True, append_images=pages), (READ,))


def _box(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(data), kind) + data


def _boxes() -> Iterator[Hostile]:
    ftyp = _box(b"ftyp", b"avif\0\0\0\0avifmif1")
    deep = b""
    for _ in range(2000):
        deep = _box(b"iprp", deep)
    sizes = _box(b"ispe", bytes(4) + struct.pack(">II", 100, 100)) * 4000
    for name, data, codes in (
        ("only-its-brands", ftyp, (UNREADABLE,)),
        ("a-box-of-size-1", ftyp + b"\0\0\0\x01meta" + b"\xff" * 8, (UNREADABLE,)),
        ("a-box-of-size-7", ftyp + b"\0\0\0\x07meta", (UNREADABLE,)),
        ("50000-boxes", ftyp + _box(b"free", b"") * 50_000, (UNREADABLE,)),
        ("a-header-of-8-MB", ftyp + _box(b"meta", bytes(8_000_000)), (UNREADABLE,)),
        ("2000-boxes-deep", ftyp + _box(b"meta", bytes(4) + deep), (UNREADABLE,)),
        (
            "4000-sizes",
            ftyp + _box(b"meta", bytes(4) + _box(b"iprp", _box(b"ipco", sizes))),
            (UNREADABLE,),
        ),
        ("a-video", _box(b"ftyp", b"mp42\0\0\0\0mp42isom") + _box(b"mdat", bytes(99)), (UNSUPPORTED,)),
    ):
        yield Hostile(f"heif-{name}", data, codes)


def _not_pictures() -> Iterator[Hostile]:
    for name, data in (
        ("gif", saved(picture(mode="P"), "gif")),
        ("bmp", saved(picture(), "bmp")),
        ("ico", saved(picture(64, 64), "ico")),
        ("jpeg2000", saved(picture(), "jpeg2000")),
        ("pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(500)),
        ("svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
        ("xml", b'\xef\xbb\xbf<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><svg/>'),
        ("text", b"just some words\n" * 40),
        ("zip", b"PK\x03\x04" + bytes(400)),
        ("elf", b"\x7fELF" + bytes(400)),
        ("random", random.Random(7).randbytes(5000)),
        ("zeros", bytes(5000)),
        ("big-tiff", b"II+\0\x08\0\0\0" + bytes(400)),
        ("postscript", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n" + bytes(99)),
    ):
        yield Hostile(f"not-{name}", data, (UNSUPPORTED,))
    yield Hostile("not-anything", b"", (UNREADABLE,))
    yield Hostile("not-a-byte-more", b"\x89PNG\r\n\x1a\n", (UNREADABLE,))
    yield Hostile("png-behind-a-byte", b"\0" + good("png"), (UNSUPPORTED,))
    yield Hostile("png-behind-a-jpeg", good("jpeg")[:200] + good("png"), (UNREADABLE,))
    yield Hostile("jpeg-within-a-tiff-name", b"II*\0" + good("jpeg"), (UNREADABLE, UNSUPPORTED, TOO_LARGE))
    yield Hostile("33-MiB", bytes(33 << 20), (TOO_LARGE,))
