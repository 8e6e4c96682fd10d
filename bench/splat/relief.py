"""What the relief is worth: its picture from where it was taken, and from elsewhere beside the truth."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.ratios import Goal, percentile
from bench.splat import meshes, pictures, scores
from bench.table import Row
from tempa.engines.splat import relief_splat
from tempa.engines.splat.gaussians import of_colors
from tempa.engines.splat.image import intake
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.raster.render import render
from tempa.engines.splat.relief.model import Options, camera, relief
from tempa.engines.splat.relief.plate import framed, plate
from tempa.engines.splat.relief.surface import camera_distance

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tempa.engines.splat.gaussians import Gaussians
    from tempa.engines.splat.relief.plate import Frame

VIEW = 512
SEEN = 768  # px: the side of the pictures of the bodies
WHITE = (1.0, 1.0, 1.0)
SIDES = (30.0, -30.0)  # degrees of yaw: the new views that count
AROUND = (30.0, -30.0, 90.0, 180.0)
BLUE = np.array((0.0, 0.0, 1.0))
WITH_ALPHA = ("mug", "fern", "lettering", "cat", "crate", "smoke")
HARD_EDGED = ("mug", "lettering", "cat", "crate")
WORK: dict[str, Any] = {
    "image": {},
    "parameters": {"num_gaussians": 131_072},
    "export_formats": ["ply", "spz"],
    "preview": {"width": 512, "height": 512, "turntable_frames": 0},
}


@dataclass(frozen=True, slots=True)
class Front:
    """How like its picture a relief is from the front."""

    psnr: float
    ssim: float


@dataclass(frozen=True, slots=True)
class Turned:
    """How like a body a cloud is from a side: over white, and its outline; and the light outside it."""

    psnr: float
    overlap: float
    outside: float


def front(rgba: NDArray[np.uint8], cloud: Gaussians, options: Options, size: int = VIEW) -> Front:
    """A cloud beside the picture that it was made of, both over white."""
    frame = framed(rgba[..., 3])
    true = plate(rgba, frame, size)
    distance = camera_distance(options.field_of_view, frame.share)
    over = true.colors * true.alpha[..., None] + 1.0 - true.alpha[..., None]
    drawn = np.clip(render(cloud, camera(distance, size), WHITE).rgb, 0.0, 1.0)
    return Front(scores.psnr(drawn, over), scores.ssim(drawn, over))


def placed(cloud: Gaussians, frame: Frame, width: int) -> Gaussians:
    """A relief where its subject was, when the picture, `width` pixels wide, showed a square of side 1."""
    scale = frame.side / width
    middle = ((frame.left + frame.side / 2) / width - 0.5, 0.5 - (frame.top + frame.side / 2) / width, 0.0)
    return replace(
        cloud,
        positions=(cloud.positions * np.float32(scale) + np.asarray(middle, np.float32)).astype(np.float32),
        scales=cloud.scales * np.float32(scale),
    )


def card(rgba: NDArray[np.uint8], size: int = 384) -> Gaussians:
    """The picture on a flat card: what a relief has to be better than. In the relief's frame."""
    flat = plate(rgba, framed(rgba[..., 3]), size)
    rows, columns = np.nonzero(flat.alpha > 1.0 / 16.0)
    cell = 1.0 / size
    positions = np.stack(((columns + 0.5) * cell - 0.5, 0.5 - (rows + 0.5) * cell, np.zeros(len(rows))), 1)
    scales = np.tile((0.56 * cell, 0.56 * cell, 0.1 * cell), (len(rows), 1))
    upright = np.tile((1.0, 0.0, 0.0, 0.0), (len(rows), 1))
    return of_colors(positions, scales, upright, 0.95 * flat.alpha[rows, columns], flat.colors[rows, columns])


def turned(cloud: Gaussians, body: Gaussians, yaw_degrees: float, size: int = VIEW) -> Turned:
    """A cloud beside the body that it stands for."""
    found, true = meshes.view(cloud, yaw_degrees, size), meshes.view(body, yaw_degrees, size)
    return Turned(
        scores.psnr(np.clip(found.over(WHITE), 0.0, 1.0), np.clip(true.over(WHITE), 0.0, 1.0)),
        scores.overlap(found.alpha > 0.5, true.alpha > 0.5),
        scores.light_outside(found.rgb, true.alpha > 0.5),
    )


def clean_cut(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A picture whose subject has no blue, before a ground that is nothing else and was cut away well."""
    colors, alpha = _without_blue(rgba)
    return _bytes(np.where(alpha > 0.0, colors, BLUE), alpha)


def careless_cut(rgba: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same where the cut left the ground's light in the colours of the soft edge."""
    colors, alpha = _without_blue(rgba)
    return _bytes(colors * alpha + BLUE * (1.0 - alpha), alpha)


def _without_blue(rgba: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values = rgba / 255.0
    return values[..., :3] * (1.0 - BLUE), values[..., 3:]


def _bytes(colors: NDArray[np.float64], alpha: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.rint(255.0 * np.dstack((colors, alpha))).astype(np.uint8)


def fringe(rgba: NDArray[np.uint8], options: Options, size: int = VIEW) -> float:
    """The greatest share of the ground's light in new views of a picture of `clean_cut` or `careless_cut`."""
    distance = camera_distance(options.field_of_view, framed(rgba[..., 3]).share)
    cloud = relief(rgba, options).gaussians
    return max(scores.foreign_light(_around(cloud, yaw, distance, size), 2) for yaw in AROUND)


def _around(cloud: Gaussians, yaw_degrees: float, distance: float, size: int) -> NDArray[np.float32]:
    straight_on = camera(distance, size)
    return render(
        cloud,
        orbit(
            yaw_degrees,
            0.0,
            distance,
            width=size,
            height=size,
            field_of_view_degrees=straight_on.field_of_view_degrees,
        ),
    ).rgb


def measure(folder: Path, *, rounds: int = 5) -> list[Row]:
    """All figures of the engine; `folder` takes the files of its runs."""
    relief_splat.load()
    return [*timed(folder, rounds), *fronts(folder), *fringes(), *turns()]


def timed(folder: Path, rounds: int) -> list[Row]:
    """How long a whole run takes, from the file to .ply, .spz and preview on the disk."""
    paths = [pictures.save(name, folder) for name in pictures.PICTURES]
    took = [_run(path, folder / "run") for _ in range(rounds) for path in paths]
    seconds, cpu = [wall for wall, _ in took], [used for _, used in took]
    slow = [percentile(seconds, 0.95)]
    return [
        Row("a run of 131,072 Gaussians: s", seconds),
        Row("a run of 131,072 Gaussians, 95th percentile: s", slow, Goal(1.5, at_least=False)),
        Row(
            "a run of 131,072 Gaussians: CPU s", cpu, note="of both cores together; others' load is not in it"
        ),
    ]


def _run(path: Path, folder: Path) -> tuple[float, float]:
    """Seconds, and CPU seconds."""
    (folder / "inputs").mkdir(parents=True)
    shutil.copyfile(path, folder / relief_splat.IMAGE)
    start, used = time.perf_counter(), time.process_time()
    relief_splat.run(WORK, folder, lambda stage, fraction=None: None)
    took = time.perf_counter() - start, time.process_time() - used
    shutil.rmtree(folder)
    return took


def fronts(folder: Path) -> list[Row]:
    """From where the picture was taken."""
    found = {}
    for name in pictures.PICTURES:
        rgba = intake.read(pictures.save(name, folder), {}).rgba
        found[name] = front(rgba, relief(rgba, Options()).gaussians, Options())
    worst = min(found, key=lambda name: found[name].psnr)
    mean_psnr = float(np.mean([each.psnr for each in found.values()]))
    mean_ssim = float(np.mean([each.ssim for each in found.values()]))
    each = [
        Row(f"  {name}: dB", [score.psnr], note=f"SSIM {score.ssim:.3f}") for name, score in found.items()
    ]
    return [
        Row("input view, mean of eight pictures: dB", [mean_psnr], Goal(28.0, at_least=True)),
        Row("input view, mean of eight pictures: SSIM", [mean_ssim], Goal(0.95, at_least=True)),
        Row("input view, the worst picture: dB", [found[worst].psnr], Goal(24.0, at_least=True), note=worst),
        *each,
    ]


def fringes() -> list[Row]:
    """The background's light in views from +-30, 90 and 180 degrees."""
    most = Goal(1.0, at_least=False)
    clean = [fringe(clean_cut(pictures.PICTURES[name]()), Options()) for name in WITH_ALPHA]
    careless = [fringe(careless_cut(pictures.PICTURES[name]()), Options()) for name in HARD_EDGED]
    soft = [fringe(careless_cut(pictures.PICTURES[name]()), Options()) for name in ("fern", "smoke")]
    return [
        Row("background's light in new views, worst of six: %", [100.0 * max(clean)], most),
        Row("  after a careless cut, worst of four hard edges: %", [100.0 * max(careless)], most),
        Row(
            "  after a careless cut, worst of two soft subjects: %",
            [100.0 * max(soft)],
            note="in their colours",
        ),
    ]


def turns() -> list[Row]:
    """From the sides, beside five bodies that are known all around."""
    found = [beside(name) for name in meshes.BODIES]
    ours, cards = [each[0] for each in found], [each[1] for each in found]
    worst = max(ours, key=lambda score: score.outside)
    over = [(a.psnr - b.psnr, a.overlap - b.overlap) for a, b in zip(ours, cards, strict=True)]
    also = [beside(name, turned_body=True)[0] for name in meshes.BODIES]
    return [
        Row(
            "+-30 degrees, mean of five bodies: overlap", [_mean(ours, "overlap")], Goal(0.85, at_least=True)
        ),
        Row(
            "+-30 degrees, mean of five bodies: dB",
            [_mean(ours, "psnr")],
            note=f"card {_mean(cards, 'psnr'):.1f}",
        ),
        Row(
            "+-30 degrees, least gain over a card: dB",
            [min(gain for gain, _ in over)],
            Goal(0.0, at_least=True),
        ),
        Row(
            "+-30 degrees, least gain over a card: overlap",
            [min(g for _, g in over)],
            Goal(0.0, at_least=True),
        ),
        Row(
            "light outside the true outline, mean: %",
            [100 * _mean(ours, "outside")],
            Goal(1.0, at_least=False),
        ),
        Row("  the worst body: %", [100.0 * worst.outside]),
        Row("  bodies not face on: overlap", [_mean(also, "overlap")], note=f"{_mean(also, 'psnr'):.1f} dB"),
        Row("  bodies not face on: light outside, %", [100.0 * _mean(also, "outside")]),
    ]


def beside(
    name: str,
    options: Options | None = None,
    *,
    turned_body: bool = False,
    size: int = VIEW,
    samples: int = meshes.SAMPLES,
) -> tuple[Turned, Turned]:
    """The relief of a body's picture, and a card of it, beside the body: means of SIDES."""
    body = meshes.body(name, samples, turned=turned_body)
    seen = meshes.picture(meshes.view(body, 0.0, SEEN))
    frame = framed(seen[..., 3])
    ours = placed(relief(seen, options or Options()).gaussians, frame, SEEN)
    flat = placed(card(seen), frame, SEEN)
    relief_score, card_score = (
        _averaged([turned(cloud, body, yaw, size) for yaw in SIDES]) for cloud in (ours, flat)
    )
    return relief_score, card_score


def _averaged(found: list[Turned]) -> Turned:
    return Turned(_mean(found, "psnr"), _mean(found, "overlap"), _mean(found, "outside"))


def _mean(found: list[Turned], name: str) -> float:
    return float(np.mean([getattr(each, name) for each in found]))
