"""How fast Gaussians are drawn on the CPU, and how near the picture is to a second renderer's.

`python -m bench.splat.raster [--rounds 5]`. A round draws every size once; the best round of each is what
counts, as neighbours on the machine can only make one slower. The cloud is a closed ball of flat discs,
as engines make them: half of it is hidden.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.probes import machine
from bench.ratios import Goal
from bench.splat.writing import surface
from bench.table import Row, print_rows
from tempa.engines.splat import preview
from tempa.engines.splat.gaussians import Gaussians
from tempa.engines.splat.preview import THREE_QUARTER
from tempa.engines.splat.raster.camera import Camera, orbit
from tempa.engines.splat.raster.render import back_project, compile, render  # noqa: A004 - its own `compile`

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 262_144
ROUNDS = 5
DRAWING_SECONDS = Goal(0.15, at_least=False)
AGREEMENT_DB = Goal(50.0, at_least=True)
TURNTABLE_SECONDS = Goal(2.0, at_least=False)
_REFERENCE = Path(__file__).parents[2] / "tests/unit/splat/raster/reference.py"


def measure(_folder: Path | None = None, *, rounds: int = ROUNDS) -> list[Row]:
    """All figures, as rows of a table. Each row's figure is the best of the rounds. Nothing is written."""
    compile()
    cloud, camera = surface(COUNT), orbit(35.0, 22.0, 1.6)
    image = render(cloud, camera).rgb
    half = surface(COUNT // 2)
    works: dict[str, tuple[Callable[[], Any], Goal | None]] = {
        "262,144 at 512 x 512, s": (lambda: render(cloud, camera), DRAWING_SECONDS),
        "the same in one thread, s": (lambda: render(cloud, camera, threads=1), None),
        "the same at 1024 x 1024, s": (lambda: render(cloud, _twice(camera)), None),
        "the same, of degree 3, s": (lambda: render(_degree_3(cloud), camera), None),
        "131,072 at 512 x 512, s": (lambda: render(half, camera), None),
        "262,144 projected back from 512 x 512, s": (lambda: back_project(cloud, camera, image), None),
        "still and 24 frames of 131,072, s": (lambda: _turn(half), TURNTABLE_SECONDS),
    }
    best = dict.fromkeys(works, math.inf)
    for _ in range(rounds):
        for what, (work, _goal) in works.items():
            best[what] = min(best[what], _seconds(work))
    rows = [Row(what, [best[what]], goal, note=f"best of {rounds}") for what, (_, goal) in works.items()]
    note = "1,024 Gaussians of degree 3 at 96 x 96"
    return [*rows, Row("agreement with float64, dB", [agreement()], AGREEMENT_DB, note=note)]


def agreement() -> float:
    """Of 1,024 wild Gaussians of degree 3 with the tests' own renderer, dB (peak 1)."""
    place = importlib.util.spec_from_file_location("reference", _REFERENCE)
    assert place is not None
    assert place.loader is not None
    reference = importlib.util.module_from_spec(place)
    place.loader.exec_module(reference)
    cloud, camera = _wild(1024), orbit(40.0, 30.0, 1.5, width=96, height=96)
    rgb, _ = reference.picture(cloud, camera)
    return -10.0 * math.log10(float(np.mean((render(cloud, camera).rgb - rgb) ** 2)))


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _twice(camera: Camera) -> Camera:
    return Camera(
        2 * camera.width,
        2 * camera.height,
        camera.field_of_view_degrees,
        camera.rotation,
        camera.position,
    )


def _turn(cloud: Gaussians) -> None:
    preview.still(cloud, THREE_QUARTER, width=512, height=512)
    preview.turntable(cloud, THREE_QUARTER, 24, width=512, height=512)


def _degree_3(cloud: Gaussians) -> Gaussians:
    harmonics = np.zeros((len(cloud), 16, 3), np.float32)
    harmonics[:, 0] = cloud.harmonics[:, 0]
    return Gaussians(cloud.positions, cloud.scales, cloud.rotations, cloud.opacities, harmonics)


def _wild(n: int) -> Gaussians:
    dice = np.random.default_rng(1)
    rotations = dice.normal(size=(n, 4))
    rotations /= np.linalg.norm(rotations, axis=1, keepdims=True)
    return Gaussians(
        dice.uniform(-0.9, 0.9, (n, 3)).astype(np.float32),
        np.exp(dice.uniform(np.log(0.002), np.log(0.3), (n, 3))).astype(np.float32),
        rotations.astype(np.float32),
        dice.uniform(0.0, 1.0, n).astype(np.float32),
        (0.4 * dice.normal(size=(n, 16, 3))).astype(np.float32),
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    asked.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = asked.parse_args().rounds
    print(f"{rounds} rounds; {machine()}")
    rows = measure(rounds=rounds)
    load = [float(Path("/proc/loadavg").read_text(encoding="ascii").split()[0])]
    print_rows("drawing", [*rows, Row("load (1 minute)", load)])


if __name__ == "__main__":
    main()
