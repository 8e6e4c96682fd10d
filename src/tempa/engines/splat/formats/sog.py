""".sog version 2 of PlayCanvas: a ZIP of `meta.json` and lossless WebP images, one Gaussian a texel.

Positions are sign(x) ln(1 + |x|) in 16 bits, in two images; scales (logarithms) and colours are numbers
in tables of 256; rotations are smallest-three bytes; spherical harmonics from degree 1 on are numbers in
a palette of whole vectors. Layout: PlayCanvas' "SOG format specification".
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tempa.engines.splat.formats import palette
from tempa.engines.splat.formats.axes import turned
from tempa.engines.splat.formats.order import morton
from tempa.engines.splat.formats.packing import SMALLEST_THREE_MAX, smallest_three, to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians

MAGIC = b"PK\x03\x04"
TAG_LARGEST = 252  # the alpha of a rotation: 252 more than which component is missing
PALETTE_COLUMNS = 64
_STEPS_16 = 65535
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the least a ZIP can say: no time of ours in the file
# libwebp's lossless effort. 262,144 Gaussians: 1.0 s and 2.2 MB at 1; 3.2 s and 2.1 MB at 4.
_WEBP_METHOD = 1


def write(gaussians: Gaussians, path: Path) -> None:
    """Write Gaussians of the family's frame, along a Morton curve: neighbours make smaller images."""
    ordered = turned(gaussians.take(morton(gaussians.positions)))
    images, means = _means(ordered.positions)
    scale_table, scale_numbers = palette.of_values(np.log(ordered.scales))
    color_table, color_numbers = palette.of_values(ordered.harmonics[:, 0])
    images["quats.webp"] = _rotations(ordered.rotations)
    images["scales.webp"] = _with_alpha(scale_numbers)
    images["sh0.webp"] = np.concatenate((color_numbers, to_bytes(ordered.opacities)[:, None]), axis=1)
    meta: dict[str, Any] = {
        "version": 2,
        "asset": {"generator": "Tempa"},
        "count": len(ordered),
        "means": means,
        "scales": {"codebook": _numbers(scale_table), "files": ["scales.webp"]},
        "quats": {"files": ["quats.webp"]},
        "sh0": {"codebook": _numbers(color_table), "files": ["sh0.webp"]},
    }
    files = {name: _webp(_texture(texels)) for name, texels in images.items()}
    if ordered.degree:
        meta["shN"], more = _harmonics(ordered.harmonics[:, 1:])
        files |= more
    _pack(path, {**files, "meta.json": json.dumps(meta, separators=(",", ":"), allow_nan=False).encode()})


def _means(positions: NDArray[np.float32]) -> tuple[dict[str, NDArray[np.uint8]], dict[str, Any]]:
    wide = positions.astype(np.float64)
    logs = np.sign(wide) * np.log1p(np.abs(wide))
    least, most = logs.min(axis=0), logs.max(axis=0)
    span = np.where(most > least, most - least, 1.0)
    steps = np.rint((logs - least) / span * _STEPS_16).astype(np.uint16)
    images = {
        "means_l.webp": _with_alpha((steps & 0xFF).astype(np.uint8)),
        "means_u.webp": _with_alpha((steps >> 8).astype(np.uint8)),
    }
    return images, {"mins": _numbers(least), "maxs": _numbers(most), "files": list(images)}


def _rotations(rotations: NDArray[np.float32]) -> NDArray[np.uint8]:
    largest, others = smallest_three(rotations)
    packed = to_bytes(others * np.float32(0.5 / SMALLEST_THREE_MAX) + np.float32(0.5))
    return np.concatenate((packed, (largest[:, None] + TAG_LARGEST).astype(np.uint8)), axis=1)


def _harmonics(rest: NDArray[np.float32]) -> tuple[dict[str, Any], dict[str, bytes]]:
    vectors, labels = palette.of_vectors(rest.reshape(len(rest), -1))
    table, numbers = palette.of_values(vectors)
    coefficients = rest.shape[1]
    rows = -(-len(vectors) // PALETTE_COLUMNS)
    centroids = np.zeros((rows * PALETTE_COLUMNS * coefficients, 3), np.uint8)
    centroids[: len(vectors) * coefficients] = numbers.reshape(-1, 3)
    label_bytes = np.stack((labels & 0xFF, labels >> 8, np.zeros_like(labels)), axis=1).astype(np.uint8)
    files = {
        "shN_centroids.webp": _webp(_with_alpha(centroids).reshape(rows, PALETTE_COLUMNS * coefficients, 4)),
        "shN_labels.webp": _webp(_texture(_with_alpha(label_bytes))),
    }
    bands = {3: 1, 8: 2, 15: 3}[coefficients]
    told = {"count": len(vectors), "bands": bands, "codebook": _numbers(table), "files": list(files)}
    return told, files


def _with_alpha(texels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate((texels, np.full((len(texels), 1), 255, np.uint8)), axis=1)


def _texture(texels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Rows of a width and number that are multiples of 4, as the format's own writer has them."""
    width = math.ceil(math.sqrt(len(texels)) / 4) * 4
    height = math.ceil(len(texels) / width / 4) * 4
    full = np.zeros((height * width, 4), np.uint8)
    full[: len(texels)] = texels
    return full.reshape(height, width, 4)


def _webp(texture: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    # `exact`: else a texel whose alpha is 0 loses its colour, and an opacity of 0 is such an alpha.
    Image.fromarray(texture, "RGBA").save(
        out, "WEBP", lossless=True, exact=True, quality=75, method=_WEBP_METHOD
    )
    return out.getvalue()


def _numbers(values: NDArray[np.floating[Any]]) -> Sequence[float]:
    return [float(value) for value in values]


def _pack(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system = 3
            archive.writestr(entry, content)
