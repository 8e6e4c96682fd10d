"""What a picture's header shows: asked in the server's process, in a worker thread, on the stored file.

Loads no library and reads a few kilobytes, whatever was sent (`headers` says why it is our own).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO

from tempa.engines.splat.image.facts import (
    ASPECT_MAX,
    SIDE_MIN,
    Bounds,
    Facts,
    Fault,
    Refused,
    broken,
    unsupported,
)
from tempa.engines.splat.image.headers import heif, jpeg, png, tiff, webp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMATS = ("PNG", "JPEG", "WebP", "AVIF", "TIFF")
_HEAD_BYTES = 32
_FOREIGN = {
    b"GIF8": "a GIF",
    b"%PDF": "a PDF",
    b"BM": "a BMP",
    b"8BPS": "a Photoshop document",
    b"\x00\x00\x01\x00": "an icon",
    b"\x00\x00\x00\x0cjP  ": "JPEG 2000",
    b"\xffO\xffQ": "JPEG 2000",
    b"\x00\x00\x00\x0cJXL ": "JPEG XL",
    b"\xff\n": "JPEG XL",
    b"v/1\x01": "OpenEXR",
    b"<svg": "an SVG drawing",
    b"<?xml": "an XML document",
    tiff.BIG[0]: "a BigTIFF",
    tiff.BIG[1]: "a BigTIFF",
}
_MODELS = {b"ply\n": "a PLY file", b"ply\r": "a PLY file", b"glTF": "a GLB file"}
_MODELS_HINT = "Send a mesh to the engine mesh-splat, and a file of Gaussians to POST /v1/convert."
# What decoding holds at once for a pixel: WebP's two canvases, its answer and Pillow's copy (16.1 measured);
# AVIF's planes, of 16 bits at worst (11.6 with 8); HEIC's (7.7 with colour at half size). With 512 MiB for
# all that they get fewer pixels than the formats that are decoded row by row.
_DECODING_BYTES_MAX = 512 * 1024 * 1024
_BYTES_PER_PIXEL = {"webp": 16, "avif": 16, "heic": 9}


def look(path: Path, bounds: Bounds | None = None, *, frame: int | None = None) -> Facts | Fault:
    """The facts of a picture that may come in, or the first reason why it may not.

    `frame` is the request's parameter: without it, animations are refused. Raises OSError if the file
    cannot be read, which is no fault of the picture.
    """
    limits = bounds or Bounds()
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        if size_bytes > limits.bytes_max:
            message = f"The image has {size_bytes} bytes; the limit is {limits.bytes_max}."
            return Fault("IMAGE_TOO_LARGE", message, limits.bytes_max, size_bytes)
        file.seek(0)
        try:
            facts = _facts(file)
            _check_motion(facts, frame)
        except Refused as refused:
            return refused.fault
    return excess(facts, limits) or facts


def excess(facts: Facts, limits: Bounds) -> Fault | None:
    """What is wrong with its size, if anything is."""
    pixels, pixels_max = facts.width * facts.height, _pixels_max(facts, limits)
    size = f"{facts.width} x {facts.height} pixels"
    if pixels > pixels_max:
        message = f"The image has {size}, {pixels} in all; the limit for this format is {pixels_max}."
        return Fault("IMAGE_TOO_LARGE", message, pixels_max, pixels)
    short, long = sorted((facts.width, facts.height))
    if short < SIDE_MIN:
        message = f"The image has {size}; its short side needs {SIDE_MIN}."
        return Fault("IMAGE_TOO_SMALL", message, SIDE_MIN, short)
    if long > ASPECT_MAX * short:
        aspect = round(long / short, 2)
        message = f"The image has {size}, an aspect ratio of {aspect}; the limit is {ASPECT_MAX}."
        return Fault("IMAGE_ASPECT_RATIO", message, ASPECT_MAX, aspect)
    return None


def heic_is_read() -> bool:
    """Whether the extra that reads HEIC is installed."""
    return find_spec("pillow_heif") is not None


def _facts(file: BinaryIO) -> Facts:
    head = file.read(_HEAD_BYTES)
    if not head:
        raise broken("The file is empty.")
    file.seek(0)
    facts = _reader(head)(file)
    if facts.format == "heic" and not heic_is_read():
        raise unsupported(
            "HEIC is not read by this server.", "Send a JPEG, or ask the operator to install tempa[heic]."
        )
    if not (facts.width and facts.height):
        raise broken(f"The header says {facts.width} x {facts.height} pixels.")
    return facts


def _reader(head: bytes) -> Callable[[BinaryIO], Facts]:
    if head.startswith(png.SIGNATURE):
        return png.read
    if head.startswith(jpeg.SIGNATURE):
        return jpeg.read
    if webp.is_webp(head):
        return webp.read
    if head[:4] in tiff.ORDERS:
        return tiff.read
    if heif.is_heif(head):
        return heif.read
    raise _foreign(head)


def _foreign(head: bytes) -> Refused:
    for signature, name in _MODELS.items():
        if head.startswith(signature):
            return unsupported(f"This is {name}, and no picture.", _MODELS_HINT)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for signature, name in _FOREIGN.items():
        if head.startswith(signature) or text.startswith(signature):
            return unsupported(f"This is {name}; {_offer()}")
    return unsupported(f"These bytes are of no known picture format; {_offer()}")


def _offer() -> str:
    read = (*FORMATS, "HEIC") if heic_is_read() else FORMATS
    return f"{', '.join(read[:-1])} and {read[-1]} are read, by their content."


def _check_motion(facts: Facts, frame: int | None) -> None:
    if facts.animated and frame is None:
        raise unsupported("This is an animation.", 'Send "frame": 0 to take its first frame, or a still.')


def _pixels_max(facts: Facts, limits: Bounds) -> int:
    a_pixel = _BYTES_PER_PIXEL.get(facts.format)
    return limits.pixels_max if a_pixel is None else min(limits.pixels_max, _DECODING_BYTES_MAX // a_pixel)
