"""The materials of a glTF file: base colours, and the textures that lie in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tempa.engines.splat.mesh import texture
from tempa.engines.splat.mesh.faults import unreadable
from tempa.engines.splat.mesh.surface import Paint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tempa.engines.splat.mesh.accessors import Document

DEFAULT = Paint()
PIXELS_MAX = texture.PIXELS_MAX  # of all textures together, too


@dataclass(frozen=True, slots=True)
class Place:
    """Which texture coordinates a texture is laid by, and how they are moved (KHR_texture_transform)."""

    channel: int = 0
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)

    def applied(self, uvs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates in the texture."""
        c, s = math.cos(self.rotation), math.sin(self.rotation)
        u, v = uvs[..., 0] * self.scale[0], uvs[..., 1] * self.scale[1]
        return np.stack((c * u + s * v + self.offset[0], -s * u + c * v + self.offset[1]), axis=-1)


class Paints:
    """Paints of a document's materials; each texture is decoded once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._textures: dict[int, NDArray[np.uint8]] = {}
        self._made: dict[tuple[Any, bool], tuple[Paint, Place | None]] = {}

    def of(self, material: Any, *, colored: bool) -> tuple[Paint, Place | None]:
        """The paint of a primitive, whose corners may be coloured too.

        Raises:
            TempaError: IMPORT_FAILED.
        """
        key = (material, colored)
        if key not in self._made:
            self._made[key] = self._paint(material, colored=colored)
        return self._made[key]

    def _paint(self, material: Any, *, colored: bool) -> tuple[Paint, Place | None]:
        if material is None:
            return Paint(even=not colored), None
        told = self._document.entry("materials", material)
        surface = told.get("pbrMetallicRoughness", {})
        factor, info = surface.get("baseColorFactor"), surface.get("baseColorTexture")
        paint = Paint(
            factor=None if factor is None and info is None else _factor(factor),
            texture=None if info is None else self._texture(info["index"]),
            even=info is None and not colored,
            opaque_from=_opaque_from(told),
        )
        return paint, None if info is None else _place(info)

    def _texture(self, number: Any) -> NDArray[np.uint8]:
        told = self._document.entry("textures", number)
        webp = told.get("extensions", {}).get("EXT_texture_webp", {})
        source = webp.get("source", told.get("source"))
        image = self._document.entry("images", source)
        if "bufferView" not in image:
            raise unreadable("a texture lies in another file, and none is opened")
        if source not in self._textures:
            self._textures[source] = texture.decode(bytes(self._document.view(image["bufferView"])[0]))
            pixels = sum(each.shape[0] * each.shape[1] for each in self._textures.values())
            if pixels > PIXELS_MAX:
                raise unreadable("its textures are too large", pixels=pixels, limit=PIXELS_MAX)
        return self._textures[source]


def _factor(told: Any) -> NDArray[np.float64]:
    factor = np.ones(4) if told is None else np.array(told, np.float64)
    if factor.shape != (4,) or not np.isfinite(factor).all():
        raise unreadable("a base colour is no colour")
    return factor.clip(0.0, 1.0)


def _opaque_from(material: Mapping[str, Any]) -> float | None:
    mode = material.get("alphaMode", "OPAQUE")
    if mode == "MASK":
        return float(material.get("alphaCutoff", 0.5))
    return None if mode == "BLEND" else 0.0


def _place(info: Mapping[str, Any]) -> Place:
    moved = info.get("extensions", {}).get("KHR_texture_transform", {})
    offset, scale = moved.get("offset", (0.0, 0.0)), moved.get("scale", (1.0, 1.0))
    return Place(
        channel=int(moved.get("texCoord", info.get("texCoord", 0))),
        offset=(float(offset[0]), float(offset[1])),
        rotation=float(moved.get("rotation", 0.0)),
        scale=(float(scale[0]), float(scale[1])),
    )
