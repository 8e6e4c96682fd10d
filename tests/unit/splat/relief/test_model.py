"""Whole reliefs, small: their scores, and what makes the scores worse."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from bench.splat import meshes, pictures
from bench.splat import relief as bench
from tempa.core.errors import TempaError
from tempa.engines.splat import gate
from tempa.engines.splat.gaussians import Gaussians, of_colors
from tempa.engines.splat.raster.camera import orbit
from tempa.engines.splat.raster.render import render
from tempa.engines.splat.relief import fitting, model
from tempa.engines.splat.relief.model import Options, relief

SMALL = Options(num_gaussians=16_384)
VIEW = 192
NOTHING = of_colors(np.zeros((0, 3)), np.ones((0, 3)), np.zeros((0, 4)), np.zeros(0), np.zeros((0, 3)))


@pytest.fixture(scope="module")
def crate() -> np.ndarray:
    return pictures.crate()


def smaller(rgba: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rgba[::3, ::3])


def disc(radius: float = 0.8, side: int = 128) -> np.ndarray:
    line = (np.arange(side) + 0.5) / side * 2.0 - 1.0
    alpha = np.clip((radius - np.hypot(line[None, :], line[:, None])) * side / 2.0 + 0.5, 0.0, 1.0)
    color = np.broadcast_to(np.array((200.0, 120.0, 40.0)), (side, side, 3))
    return np.dstack((color, 255.0 * alpha)).astype(np.uint8)


def bytes_of(gaussians: Gaussians) -> bytes:
    parts = (
        gaussians.positions,
        gaussians.scales,
        gaussians.rotations,
        gaussians.opacities,
        gaussians.harmonics,
    )
    return b"".join(part.tobytes() for part in parts)


def side_cover(gaussians: Gaussians) -> np.ndarray:
    """From straight beside it, the alpha over the middle of the body."""
    alpha = render(
        gaussians, orbit(90.0, 0.0, 3.0, width=VIEW, height=VIEW, field_of_view_degrees=20.0)
    ).alpha
    middle = VIEW // 2
    return alpha[middle - 40 : middle + 40, middle - 40 : middle + 40]


@pytest.mark.parametrize("budget", [1024, 5000, 16_384])
def test_count_is_within_a_tenth_of_the_budget(budget: int) -> None:
    made = relief(smaller(pictures.cat()), Options(num_gaussians=budget))
    assert 0.9 * budget <= len(made.gaussians) <= budget


def test_wall_keeps_to_its_share() -> None:
    made = relief(smaller(pictures.cat()), Options(num_gaussians=1024))
    assert 0 < made.measured["layers"]["rim"] <= 0.12 * 1024


def test_wisp_uses_its_budget() -> None:
    """A diagonal line covers next to nothing of its square."""
    rgba = np.zeros((128, 128, 4), np.uint8)
    for i in range(8, 120):
        rgba[i, i - 1 : i + 2] = 255
    made = relief(rgba, Options(num_gaussians=4096))
    assert 0.9 * 4096 <= len(made.gaussians) <= 4096


def dots() -> np.ndarray:
    rgba = np.zeros((256, 256, 4), np.uint8)
    rgba[::16, ::16] = 255
    return rgba


def test_dots_use_their_budget() -> None:
    made = relief(dots(), SMALL)
    assert 0.9 * SMALL.num_gaussians <= len(made.gaussians) <= SMALL.num_gaussians


def test_too_fine_for_so_few_is_told() -> None:
    rgba = np.zeros((1024, 1024, 4), np.uint8)
    rgba[::16, ::16] = 255
    with pytest.raises(TempaError) as raised:
        relief(rgba, Options(num_gaussians=1024))
    assert raised.value.code == "NO_FOREGROUND"


def test_same_bytes_by_one_thread_and_two() -> None:
    rgba = smaller(pictures.mug())
    first, again = relief(rgba, SMALL, threads=1), relief(rgba, SMALL, threads=2)
    assert bytes_of(first.gaussians) == bytes_of(again.gaussians)


def test_stays_in_its_cube() -> None:
    made = relief(disc(), Options(num_gaussians=4096, thickness=2.0))
    assert np.abs(made.gaussians.positions).max() <= 0.5


def test_wide_lens_close_to_a_full_picture() -> None:
    """The camera stands half a side away: nothing may reach it, or lie behind it."""
    wide = replace(SMALL, field_of_view=90.0, thickness=2.0)
    rgba = np.full((128, 128, 4), 255, np.uint8)
    rgba[..., 0] = np.arange(128)
    made = relief(rgba, wide)
    gate.accept(made.gaussians, asked=SMALL.num_gaussians)
    assert bench.front(rgba, made.gaussians, wide, size=VIEW).psnr > 21.0


@pytest.mark.parametrize(
    ("name", "psnr", "ssim"), [("mug", 29.0, 0.955), ("crate", 29.0, 0.95), ("cat", 25.3, 0.945)]
)
def test_looks_like_its_picture(name: str, psnr: float, ssim: float) -> None:
    rgba = pictures.PICTURES[name]()
    found = bench.front(rgba, relief(rgba, SMALL).gaussians, SMALL, size=VIEW)
    assert found.psnr > psnr
    assert found.ssim > ssim


def test_fit_makes_it_more_alike(crate: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = bench.front(crate, relief(crate, SMALL).gaussians, SMALL, size=VIEW)
    monkeypatch.setattr(model, "fit", partial(fitting.fit, rounds=0))
    unfitted = bench.front(crate, relief(crate, SMALL).gaussians, SMALL, size=VIEW)
    assert fitted.psnr > unfitted.psnr + 2.0


@pytest.mark.parametrize("name", list(meshes.BODIES))
def test_beats_a_card_from_the_side(name: str) -> None:
    ours, card = bench.beside(name, SMALL, size=VIEW, samples=60_000)
    assert ours.psnr > card.psnr + 2.0
    assert ours.overlap > max(0.88, card.overlap)
    assert ours.outside < 0.02


def test_no_thickness_is_a_card() -> None:
    made = relief(disc(), replace(SMALL, thickness=0.0))
    assert np.ptp(made.gaussians.positions[:, 2]) < 0.05


def test_no_light_of_the_background(crate: np.ndarray) -> None:
    assert bench.fringe(bench.clean_cut(crate), SMALL, size=VIEW) < 0.001
    assert bench.fringe(bench.careless_cut(crate), SMALL, size=VIEW) < 0.01


def test_fit_over_the_background_would_bring_it_in(
    crate: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard: comparing what is blended, over the ground, and not straight colours."""

    def drawn_over(rgb: np.ndarray, alpha: np.ndarray, target: Any) -> np.ndarray:
        ground = np.array((0.0, 0.0, 1.0), np.float32)
        over = rgb + ground * (1.0 - alpha[..., None])
        true = target.colors * target.alpha[..., None] + ground * (1.0 - target.alpha[..., None])
        ones = np.ones_like(alpha)[..., None]
        return np.concatenate((true - over, ones, 0.0 * ones), axis=2).astype(np.float32)

    monkeypatch.setattr(fitting, "_differences", drawn_over)
    assert bench.fringe(bench.clean_cut(crate), SMALL, size=VIEW) > 0.003


def test_fit_brightens_no_soft_edge() -> None:
    """One colour all over, and an edge 24 px wide: what is drawn there is dim for its alpha alone."""
    line = (np.arange(128) + 0.5) / 64.0 - 1.0
    rgba = disc()
    rgba[..., :3] = 200, 120, 40
    rgba[..., 3] = 255 * np.clip((0.8 - np.hypot(line[None, :], line[:, None])) * 128 / 24 + 0.5, 0.0, 1.0)
    colors = relief(rgba, SMALL).gaussians.colors
    assert np.abs(colors - np.array((200, 120, 40)) / 255.0).max() < 0.02


def test_fit_stays_near_the_colours_of_its_place(crate: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = relief(crate, SMALL).gaussians.colors
    monkeypatch.setattr(model, "fit", partial(fitting.fit, rounds=0))
    assert 0.05 < np.abs(fitted - relief(crate, SMALL).gaussians.colors).max() < 0.151


def test_fit_leaves_the_rim_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Gaussians] = []

    def fit(parts: list[Gaussians], *rest: Any, **options: Any) -> Gaussians:
        given.extend(parts)
        return fitting.fit(parts, *rest, **options)

    monkeypatch.setattr(model, "fit", fit)
    made = relief(disc(), SMALL).gaussians
    wall = made.take(np.arange(len(made) - len(given[2]), len(made)))
    assert wall.opacities.tobytes() == given[2].opacities.tobytes()
    np.testing.assert_allclose(wall.colors, given[2].colors, atol=1e-6)


def test_seam_is_closed() -> None:
    assert side_cover(relief(disc(), SMALL).gaussians).min() > 0.97


def test_seam_is_open_without_the_rim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "rim", lambda *_: NOTHING)
    assert side_cover(relief(disc(), SMALL).gaussians).min() < 0.9


def test_soft_subject_is_as_soft_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Front and back together, and neighbours over one another, cover what the picture's alpha says."""
    monkeypatch.setattr(model, "fit", partial(fitting.fit, rounds=0))
    rgba = disc()
    rgba[..., 3] = rgba[..., 3] * 0.75
    drawn = render(
        relief(rgba, SMALL).gaussians,
        orbit(0.0, 0.0, 3.0, width=VIEW, height=VIEW, field_of_view_degrees=20.0),
    )
    middle = drawn.alpha[VIEW // 2 - 20 : VIEW // 2 + 20, VIEW // 2 - 20 : VIEW // 2 + 20]
    assert middle.mean() == pytest.approx(0.75, abs=0.05)


def test_hole_stays_open() -> None:
    rgba = disc()
    rgba[disc(0.35)[..., 3] > 0, 3] = 0
    drawn = render(relief(rgba, SMALL).gaussians, orbit(0.0, 0.0, 3.0, width=VIEW, height=VIEW))
    assert drawn.alpha[VIEW // 2 - 8 : VIEW // 2 + 8, VIEW // 2 - 8 : VIEW // 2 + 8].max() < 0.01


def test_depth_image_bends_the_front() -> None:
    rgba = disc()
    depth = np.broadcast_to(np.arange(128.0)[None, :], (128, 128))
    made = relief(rgba, replace(SMALL, thickness=0.2, depth_scale=0.4), depth).gaussians
    right = made.positions[:, 0] > 0.25
    left = made.positions[:, 0] < -0.25
    assert made.positions[right, 2].mean() > made.positions[left, 2].mean() + 0.15


def test_square_is_a_plate() -> None:
    rgba = np.zeros((128, 128, 4), np.uint8)
    rgba[20:108, 20:108] = 255
    assert relief(rgba, Options(num_gaussians=1024)).measured["boxiness"] == 1.0


def test_says_how_it_was_made() -> None:
    made = relief(disc(), SMALL)
    assert made.measured["boxiness"] == 0.0
    assert sum(made.measured["layers"].values()) == len(made.gaussians)
    assert made.measured["thickness"] == pytest.approx(0.92, abs=0.04)
