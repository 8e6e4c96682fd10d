"""Reading .sog (version 2) that anyone may have made: a ZIP of images, which are two ways to be a bomb."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.packing import (
    SMALLEST_THREE_MAX,
    from_bytes,
    from_smallest_three,
    harmonics_of,
)
from tempa.engines.splat.formats.palette import VECTORS_MAX
from tempa.engines.splat.formats.sog import PALETTE_COLUMNS, TAG_LARGEST
from tempa.engines.splat.formats.source import counted, linear_scales, malformed
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

META = "meta.json"
_META_BYTES_MAX = 1 << 20
_FILES_MAX = 64
_SPARE_TEXELS = 1 << 16  # that an image may have beyond what its count needs
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, Image.DecompressionBombError, OSError, ValueError, EOFError,
    SyntaxError, RuntimeError, NotImplementedError, KeyError, IndexError, OverflowError,
)  # fmt: skip


def read(data: NDArray[np.uint8]) -> Gaussians:
    """Read a whole file.

    Raises:
        TempaError: IMPORT_FAILED.
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data.tobytes()))
        entries = archive.infolist()
    except _DAMAGE as error:
        raise malformed("it is no ZIP archive", reason=str(error)[:80]) from error
    if len(entries) > _FILES_MAX:
        raise malformed("its archive holds too many files", files=len(entries))
    reader = _Reader(archive, _parsed(_content(archive, META, _META_BYTES_MAX)), len(data))
    return turned(reader.gaussians())


def _content(archive: zipfile.ZipFile, name: str, size_bytes_max: int) -> bytes:
    """A file of the archive; one that promises more than it may have is not begun."""
    try:
        size = archive.getinfo(name).file_size
        if size > size_bytes_max:
            raise malformed("a file in its archive is too large", name=name, size_bytes=size)
        with archive.open(name) as file:
            return file.read(size_bytes_max + 1)
    except _DAMAGE as error:
        raise malformed("a file in its archive is missing or damaged", name=name[:80]) from error


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        meta = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise malformed("meta.json is no JSON", reason=type(error).__name__) from error
    if not isinstance(meta, dict) or meta.get("version") != 2:
        version = meta.get("version") if isinstance(meta, dict) else None
        raise malformed("only version 2 of .sog is read", version=str(version)[:20])
    return meta


class _Reader:
    """One archive with its `meta.json`."""

    def __init__(self, archive: zipfile.ZipFile, meta: Mapping[str, Any], size_bytes: int) -> None:
        self._archive, self._meta, self._size_bytes = archive, meta, size_bytes
        count = meta.get("count")
        if type(count) is not int:
            raise malformed("meta.json tells no count", found=str(count)[:20])
        self._count = counted(count)

    def gaussians(self) -> Gaussians:
        """In the file's own axes."""
        low, high = self._texels("means", 0), self._texels("means", 1)
        rotations, scales, base = (self._texels(name, 0) for name in ("quats", "scales", "sh0"))
        return Gaussians(
            self._positions(low, high),
            linear_scales(self._table("scales")[scales[:, :3]]),
            _rotations(rotations),
            np.ascontiguousarray(from_bytes(base[:, 3])),
            self._harmonics(self._table("sh0")[base[:, :3]][:, None]),
        )

    def _positions(self, low: NDArray[np.uint8], high: NDArray[np.uint8]) -> NDArray[np.float32]:
        least, most = self._floats("means", "mins", 3), self._floats("means", "maxs", 3)
        steps = low[:, :3].astype(np.float64) + high[:, :3] * 256.0
        logs = least + (most - least) * (steps / 65535)
        positions: NDArray[np.float32] = (np.sign(logs) * np.expm1(np.abs(logs))).astype(np.float32)
        return positions

    def _harmonics(self, base: NDArray[np.float32]) -> NDArray[np.float32]:
        if "shN" not in self._meta:
            return np.ascontiguousarray(base)
        told = self._section("shN")
        bands, size = told.get("bands"), told.get("count")
        if bands not in (1, 2, 3) or type(size) is not int or not 0 < size <= VECTORS_MAX:
            raise malformed(
                "its palette of harmonics is out of bounds", bands=str(bands)[:20], count=str(size)[:20]
            )
        vectors = self._palette(size, COEFFICIENTS[bands] - 1)
        labels = self._texels("shN", 1).astype(np.intp)
        numbers = labels[:, 0] + 256 * labels[:, 1]
        if numbers.max() >= size:
            raise malformed("a Gaussian's spherical harmonics are not in the palette", palette=size)
        return harmonics_of(base, vectors[numbers])

    def _palette(self, size: int, coefficients: int) -> NDArray[np.float32]:
        width = PALETTE_COLUMNS * coefficients
        image = self._image("shN", 0, width * -(-size // PALETTE_COLUMNS))
        if image.shape[1] != width or image.shape[0] * PALETTE_COLUMNS < size:
            raise malformed("its palette's image is of another size", size=list(image.shape[:2]))
        numbers = image.reshape(-1, 4)[: size * coefficients, :3]
        return self._table("shN")[numbers].reshape(size, coefficients, 3)

    def _section(self, name: str) -> Mapping[str, Any]:
        section = self._meta.get(name)
        if not isinstance(section, dict):
            raise malformed("meta.json lacks a section", section=name)
        return section

    def _floats(self, section: str, name: str, length: int) -> NDArray[np.float64]:
        values = self._section(section).get(name)
        if (
            not isinstance(values, list)
            or [type(value) in {int, float} for value in values] != [True] * length
        ):
            raise malformed(
                "a list in meta.json is not what it should be", list=f"{section}.{name}", length=length
            )
        try:
            return np.array(values, np.float64)
        except OverflowError as error:  # a whole number of a thousand digits
            raise malformed("a number in meta.json is out of bounds", list=f"{section}.{name}") from error

    def _table(self, section: str) -> NDArray[np.float32]:
        return self._floats(section, "codebook", 256).astype(np.float32)

    def _texels(self, section: str, number: int) -> NDArray[np.uint8]:
        """One row a Gaussian."""
        texels = self._image(section, number, self._count).reshape(-1, 4)
        if len(texels) < self._count:
            raise malformed("an image has fewer texels than there are Gaussians", image=section)
        return texels[: self._count]

    def _image(self, section: str, number: int, texels: int) -> NDArray[np.uint8]:
        """Decoded only if its header tells about as many texels as it should have."""
        files = self._section(section).get("files")
        if not isinstance(files, list) or len(files) <= number or not isinstance(files[number], str):
            raise malformed("meta.json names no image", section=section, image=number)
        content = _content(self._archive, files[number], self._size_bytes)
        try:
            image = Image.open(io.BytesIO(content), formats=["WEBP"])
            if image.width * image.height > 2 * texels + _SPARE_TEXELS:
                raise malformed("an image is larger than its count needs", image=section)
            return np.asarray(image.convert("RGBA"))
        except _DAMAGE as error:
            raise malformed("an image is damaged", image=section, reason=type(error).__name__) from error


def _rotations(texels: NDArray[np.uint8]) -> NDArray[np.float32]:
    if texels[:, 3].min() < TAG_LARGEST:
        raise malformed("a rotation is marked wrongly", found=int(texels[:, 3].min()))
    others = (from_bytes(texels[:, :3]) * 2 - 1) * np.float32(SMALLEST_THREE_MAX)
    return from_smallest_three(texels[:, 3].astype(np.intp) - TAG_LARGEST, others)
