"""A .ply as columns, in the file's own axes: read by a few lines that share nothing with the product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# From the frame to RDF: half a turn about x, by hand.
TURN = np.array([1.0, -1.0, -1.0])


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions, logarithms of scales, rotations (w first), logits of opacity, harmonics (n, k, 3)."""

    positions: NDArray[np.float64]
    logs: NDArray[np.float64]
    rotations: NDArray[np.float64]
    logits: NDArray[np.float64]
    harmonics: NDArray[np.float64]


def of_ply(path: Path) -> Columns:
    head, _, body = path.read_bytes().partition(b"end_header\n")
    names = [line.split()[2] for line in head.decode().splitlines() if line.startswith("property float")]
    rows = np.frombuffer(body, "<f4").reshape(-1, len(names)).astype(float)
    at = {name: rows[:, number] for number, name in enumerate(names)}
    rest = sum(name.startswith("f_rest") for name in names) // 3
    harmonics = [
        np.stack([at[f"f_dc_{channel}"]] + [at[f"f_rest_{channel * rest + n}"] for n in range(rest)], axis=1)
        for channel in range(3)
    ]
    return Columns(
        np.stack([at[name] for name in "xyz"], axis=1),
        np.stack([at[f"scale_{n}"] for n in range(3)], axis=1),
        np.stack([at[f"rot_{n}"] for n in range(4)], axis=1),
        at["opacity"],
        np.stack(harmonics, axis=2),
    )


def near(
    name: str, wrote: Gaussians, found: Columns, *, degree_max: int = 3, rotation_degrees: float | None = None
) -> None:
    """What another reader found in a file of ours, in the file's axes, is what we wrote.

    `rotation_degrees`: a bound for that reader, if it is not the format's.
    """
    form, accuracy = FORMATS[name], FORMATS[name].accuracy
    turn = TURN if form.axes == "RDF" else np.ones(3)
    logs = np.log(wrote.scales.astype(float))
    reach = float(np.abs(wrote.positions).max())
    assert len(found.positions) == len(wrote)
    assert np.abs(found.positions - wrote.positions * turn).max() <= accuracy.position * reach + 1e-7
    assert np.abs(found.logs - logs).max() <= accuracy.scale * 1.02 + accuracy.of_range * np.ptp(logs) + 2e-6
    turned = wrote.rotations * np.append(1.0, turn)
    assert _angle(found.rotations, turned) <= (rotation_degrees or accuracy.rotation_degrees)
    opacities = 1 / (1 + np.exp(-found.logits))
    assert np.abs(opacities - wrote.opacities).max() <= accuracy.opacity + 2e-6
    colors = 0.5 + 0.28209479177387814 * found.harmonics[:, 0]
    assert np.abs(colors - wrote.colors).max() <= accuracy.color + accuracy.of_range + 2e-6
    _near_harmonics(name, wrote, found, min(wrote.degree, form.degree_max, degree_max))


def _near_harmonics(name: str, wrote: Gaussians, found: Columns, degree: int) -> None:
    accuracy = FORMATS[name].accuracy
    count = COEFFICIENTS[degree]
    rest = np.clip(wrote.harmonics[:, 1:count], *accuracy.harmonics_range)
    # At (x, -y, -z), the functions that are odd in y and z together change their sign.
    odd = [1, 2, 4, 7, 9, 11, 12, 14]
    signs = np.array([-1.0 if number in odd else 1.0 for number in range(1, count)])
    turned = rest * signs[:, None] if FORMATS[name].axes == "RDF" else rest
    bound = (accuracy.harmonics or 0.0) + accuracy.of_range * (np.ptp(rest) if rest.size else 0.0)
    assert np.abs(found.harmonics[:, 1:count] - turned).max(initial=0) <= bound + 2e-6


def _angle(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one = one / np.linalg.norm(one, axis=1, keepdims=True)
    apart = np.minimum(np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1))
    return float(np.degrees(4 * np.arcsin(apart.max() / 2)))
