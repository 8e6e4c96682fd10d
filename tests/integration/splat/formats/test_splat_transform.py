"""PlayCanvas' splat-transform, the reader behind SuperSplat, reads every file of ours; we read its files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import Gaussians
from tests.integration.splat.formats.columns import near, of_ply
from tests.integration.splat.formats.conftest import SplatTransform
from tests.unit.splat.formats.clouds import arms, cloud, stored

pytestmark = pytest.mark.allowed_skip("Node is no part of what Tempa needs")

READ_BY_IT = [name for name in FORMATS if name != "glb"]  # it writes .glb, and does not read it
HALF_TURN_ABOUT_Y = [-1, 1, -1]


def written(name: str, gaussians: Gaussians, folder: Path) -> Path:
    path = folder / FORMATS[name].file_name
    write(name, gaussians, path)
    return path


@pytest.mark.parametrize("degree", [0, 2, 3])
@pytest.mark.parametrize("name", READ_BY_IT)
def test_it_finds_what_was_written(
    name: str, degree: int, splat_transform: SplatTransform, tmp_path: Path
) -> None:
    gaussians = cloud(400, degree)

    splat_transform(written(name, gaussians, tmp_path), tmp_path / "back.ply")

    # It takes a .splat's 128 q + 128 for 127.5 q + 127.5, which turns by up to 0.9 degrees more.
    bound = 2.4 if name == "splat" else None
    near(name, stored(name, gaussians), of_ply(tmp_path / "back.ply"), rotation_degrees=bound)


@pytest.mark.parametrize("name", READ_BY_IT)
def test_it_counts_them(name: str, splat_transform: SplatTransform, tmp_path: Path) -> None:
    told = json.loads(splat_transform(written(name, cloud(400, 1), tmp_path), "--info", "json", "null"))

    assert (told["numGaussians"], told["shBands"]) == (400, min(1, FORMATS[name].degree_max))


def upright(splat_transform: SplatTransform, path: Path) -> bool:
    """Whether the green arm points up in the tool's own frame, which is the one of its .glb."""
    splat_transform(path, path.with_name("seen.glb"))
    seen = read(path.with_name("seen.glb"))
    green = seen.positions[np.argmax(seen.colors, axis=1) == 1]
    return bool(green[:, 1].max() > 0.3)


@pytest.mark.parametrize("name", READ_BY_IT)
def test_it_shows_the_object_as_documented(
    name: str, splat_transform: SplatTransform, tmp_path: Path
) -> None:
    """An .spz is RUB by its own documentation, and this tool takes it for RDF."""
    assert upright(splat_transform, written(name, arms(), tmp_path)) == (name != "spz")


@pytest.fixture(scope="module")
def theirs(splat_transform: SplatTransform, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Files it has made of one of ours."""
    folder = tmp_path_factory.mktemp("theirs")
    write("ply", cloud(400, 2), folder / "ours.ply")
    makes = {
        "ply": ("ply.ply",), "compressed_ply": ("c.compressed.ply",), "sog": ("s.sog",), "glb": ("g.glb",),
        "spz 3": ("three.spz", "--spz-version", "3"), "spz 4": ("four.spz",),
    }  # fmt: skip
    for file, *options in makes.values():
        splat_transform(*options, folder / "ours.ply", folder / file)
    return {name: folder / file for name, (file, *_) in makes.items()}


@pytest.mark.parametrize(
    ("name", "turn", "bound"),
    [
        ("ply", [1, 1, 1], 1e-6),
        ("compressed_ply", [1, 1, 1], 1e-3),
        ("sog", [1, 1, 1], 1e-4),
        ("glb", HALF_TURN_ABOUT_Y, 1e-6),
        ("spz 3", [1, -1, -1], 2.0**-12),
        ("spz 4", [1, -1, -1], 2.0**-12),
    ],
)
def test_we_read_what_it_writes(name: str, turn: list[int], bound: float, theirs: Mapping[str, Path]) -> None:
    gaussians, found = cloud(400, 2), read(theirs[name])

    # Some it sorts; opacities are as good as names here.
    mine, other = np.argsort(gaussians.positions[:, 1]), np.argsort(found.positions[:, 1] * turn[1])
    assert (len(found), found.degree) == (400, 2)
    assert np.sort(found.positions[:, 0] * turn[0]) == pytest.approx(
        np.sort(gaussians.positions[:, 0]), abs=bound
    )
    assert found.opacities[other].mean() == pytest.approx(gaussians.opacities[mine].mean(), abs=0.002)
    if name in {"ply", "glb"}:
        assert found.positions == pytest.approx(gaussians.positions * turn, abs=1e-6)
        assert found.scales == pytest.approx(gaussians.scales, rel=1e-5)
        assert found.colors == pytest.approx(gaussians.colors, abs=1e-5)
