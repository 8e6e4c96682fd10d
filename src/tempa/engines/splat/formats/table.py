"""The file formats of this family: what they are called, how they lie in space, and what they lose.

Light to import: no NumPy. Bounds are for what `formats.files.write` writes; `verify` and the tests hold
every reader to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

FormatName: TypeAlias = Literal["ply", "compressed_ply", "splat", "ksplat", "spz", "sog", "glb"]
Axes: TypeAlias = Literal["RDF", "RUB"]

COUNT_MAX = 8_388_608  # Gaussians in a file that is read: beside 256 MiB of upload, a bound for bombs


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far a value that is read may lie from what was written.

    - `position`: as a share of the largest absolute coordinate; 0: the very float32.
    - `scale`: as a share of the scale.
    - `rotation_degrees`: angle between the two orientations.
    - `opacity`, `color` (degree 0, as sRGB from 0 to 1): absolute.
    - `harmonics`: of a coefficient of degree 1 to 3, absolute. None: there is a palette of 65,536, which
      holds so many Gaussians as they are and stands in for more as well as it can.
    - `of_range`: what comes on top for logarithms of scales, colours and harmonics, as a share of the
      range each of them has in the data: the width of a step where the data tells the steps.

    What the format cannot hold is clipped first: scales to `scale_range`, colours to `color_range`,
    coefficients to `harmonics_range`.
    """

    position: float = 0.0
    scale: float = 2e-5  # exp(ln x) in float32, at ln x = -87
    rotation_degrees: float = 1e-4  # float32
    opacity: float = 2e-7  # sigmoid(logit x), and the logit of 1 is cut at 1 - 2^-24
    color: float = 1e-6
    harmonics: float | None = 0.0
    of_range: float = 0.0
    # From the least normal float32, which stands for a flat Gaussian's 0 (`source.SCALE_LEAST`): 1.2e-38 is
    # more, and what was flat did not read back the same.
    scale_range: tuple[float, float] = (2.0**-126, 3.4e38)
    color_range: tuple[float, float] = (-1e6, 1e6)
    harmonics_range: tuple[float, float] = (-1e6, 1e6)


@dataclass(frozen=True, slots=True)
class SplatFormat:
    """One format.

    - `axes`: RDF is x right, y down, z forward (COLMAP, 3DGS); RUB is x right, y up, z backward (glTF).
    - `degree_max`: of the spherical harmonics it holds; higher ones are left out.
    - `size_bytes`: of one Gaussian of degree 0, before any entropy coding.
    - `count_max`: of Gaussians in one file.
    - `reorders`: the writer sorts them along a Morton curve, because the format gains by it.
    """

    name: FormatName
    title: str
    file_name: str
    media_type: str
    axes: Axes
    degree_max: int
    size_bytes: float
    count_max: int
    accuracy: Accuracy
    reorders: bool = False

    @property
    def role(self) -> str:
        """What webhooks call it."""
        return "gaussian_ply" if self.name == "ply" else self.name

    @property
    def lossy(self) -> bool:
        """Whether a value may come back as another than the float32 that was written."""
        return self.accuracy.opacity > EXACT.opacity


EXACT = Accuracy()
_BYTE = 0.5 / 255
_UINT32 = 2**32 - 1

FORMATS: Mapping[str, SplatFormat] = {
    each.name: each
    for each in (
        SplatFormat(
            "ply", "3DGS .ply, binary", "model.ply", "application/x-ply", "RDF", 3, 68, _UINT32, EXACT
        ),
        SplatFormat(
            "compressed_ply",
            "compressed .ply (PlayCanvas)",
            "model.compressed.ply",
            "application/x-ply",
            "RDF",
            3,
            16 + 72 / 256,
            _UINT32,
            Accuracy(
                position=1e-3,  # 10 bits over the box of 256, which is at most twice the coordinate
                rotation_degrees=0.3,
                opacity=_BYTE + 1e-6,
                harmonics=8 / 256 / 2 + 1e-6,
                of_range=_BYTE,  # 8 bits for colours, 10 for logarithms of scales
                scale_range=(exp(-20), exp(20)),  # rounded, a cloud of flat ones alone differed
                harmonics_range=(-4.0, 4.0),
            ),
            reorders=True,
        ),
        SplatFormat(
            "splat",
            ".splat (antimatter15)",
            "model.splat",
            "application/x-gaussian-splat",
            "RDF",
            0,
            32,
            _UINT32,
            Accuracy(
                rotation_degrees=1.5,  # 8 bits, and a component of 1 is cut at 127/128
                opacity=_BYTE + 1e-6,
                color=_BYTE + 1e-6,
                color_range=(0.0, 1.0),
            ),
        ),
        SplatFormat(
            "ksplat",
            ".ksplat, level 0 (mkkellogg)",
            "model.ksplat",
            "application/x-gaussian-ksplat",
            "RDF",
            2,
            44,
            _UINT32,
            Accuracy(opacity=_BYTE + 1e-6, color=_BYTE + 1e-6, color_range=(0.0, 1.0)),
        ),
        SplatFormat(
            "spz",
            ".spz, version 3 (Niantic)",
            "model.spz",
            "application/x-gaussian-spz",
            "RUB",
            3,
            20,
            _UINT32,
            Accuracy(
                position=2.0**-16,
                scale=0.032,  # 16 steps to the e-fold
                rotation_degrees=0.3,
                opacity=_BYTE + 1e-6,
                color=0.0037,  # 8 bits, 38.25 steps to a coefficient of degree 0
                harmonics=8.5 / 128,  # 4 bits; 5 bits at degree 1
                scale_range=(exp(-10), exp(5.9375)),
                color_range=(-0.4403, 1.4403),
                harmonics_range=(-1.0, 0.9921875),
            ),
        ),
        SplatFormat(
            "sog",
            ".sog, version 2 (PlayCanvas)",
            "model.sog",
            "application/x-gaussian-sog",
            "RDF",
            3,
            16,
            16_380 * 16_380,  # a WebP's sides are 14 bits, and theirs here are multiples of 4
            Accuracy(
                position=2.2e-4,  # 16 bits over sign(x) ln(1 + |x|), for coordinates up to a million
                rotation_degrees=1.2,
                opacity=_BYTE + 1e-6,
                harmonics=None,
                of_range=1 / 252,  # 256 steps, the widest of 1/127 of the range
            ),
            reorders=True,
        ),
        SplatFormat(
            "glb",
            "glTF 2.0, binary, with KHR_gaussian_splatting",
            "model.glb",
            "model/gltf-binary",
            "RUB",
            3,
            60,
            2**32 // 256,
            Accuracy(opacity=0.0, color=1e-6),
        ),
    )
}
