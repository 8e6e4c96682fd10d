"""Colours into sRGB: by the picture's own ICC profile, or as its mode is usually meant."""

from __future__ import annotations

import contextlib
import io

from PIL import Image, ImageCms

_PROFILE_BYTES_MAX = 4 * 1024 * 1024  # a press profile has 0.5 to 2 MB
_SPACES = {"GRAY": "L", "RGB ": "RGB", "CMYK": "CMYK", "Lab ": "LAB"}


def in_srgb(image: Image.Image, profile: object) -> Image.Image:
    """An L, RGB, CMYK, LAB or RGBA picture as RGBA in sRGB. `profile` is what the file embeds, if anything.

    A profile that is broken, or for other colours than the picture's, is passed over: so do browsers.
    """
    colors, alpha = (image.convert("RGB"), image.getchannel("A")) if image.mode == "RGBA" else (image, None)
    matched = _matched(colors, profile) if isinstance(profile, bytes) else None
    if matched is None:
        matched = _lab(colors) if colors.mode == "LAB" else colors.convert("RGB")
    if alpha is None:
        return matched.convert("RGBA")
    matched.putalpha(alpha)
    return matched


def _matched(image: Image.Image, profile: bytes) -> Image.Image | None:
    if not 0 < len(profile) <= _PROFILE_BYTES_MAX:
        return None
    with contextlib.suppress(ImageCms.PyCMSError, OSError, ValueError, TypeError):
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = _SPACES.get(source.profile.xcolor_space)
        if space == "L" and image.mode == "RGB":  # grey pictures that a palette or an alpha made RGB
            image = image.convert("L")
        if space == image.mode:
            return _through(image, source)
    return None


def _lab(image: Image.Image) -> Image.Image:
    return _through(image, ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")))


def _through(image: Image.Image, source: ImageCms.ImageCmsProfile) -> Image.Image:
    target = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    turned = ImageCms.profileToProfile(
        image,
        source,
        target,
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        outputMode="RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    assert turned is not None, "not in place"
    return turned
