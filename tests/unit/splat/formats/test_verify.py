"""A file that does not hold what was written does not leave the engine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.formats import forge, verify
from tempa.engines.splat.formats.export import export
from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import Gaussians
from tests.unit.splat.formats.clouds import cloud


def made(name: str, gaussians: Gaussians, folder: Path) -> Path:
    path = folder / FORMATS[name].file_name
    write(name, gaussians, path)
    return path


def failed(path: Path, name: str, gaussians: Gaussians) -> dict[str, object]:
    with pytest.raises(TempaError) as raised:
        verify.verify(path, name, gaussians)
    assert raised.value.code == "EXPORT_FAILED"
    return raised.value.detail


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("name", FORMATS)
def test_what_was_written_passes(name: str, degree: int, tmp_path: Path) -> None:
    file = export(name, cloud(500, degree), tmp_path)

    assert (tmp_path / file.name).exists()
    assert (file.role, file.file_format) == (FORMATS[name].role, name)
    assert file.media_type == FORMATS[name].media_type


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_cannot_hold_is_clipped_and_passes(name: str, tmp_path: Path) -> None:
    wild = cloud(300, 1)
    wild.scales[::3] *= 1e-5
    wild.harmonics[::5] *= 40
    wild.positions[::7] *= 30

    export(name, wild, tmp_path)


@pytest.mark.parametrize("axes", [[2], [0, 1, 2]], ids=["discs", "points"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_scale_of_nothing_passes(name: str, axes: list[int], tmp_path: Path) -> None:
    flat = cloud(300)
    flat.scales[:, axes] = 0
    splat = tmp_path / "flat.splat"
    write("splat", flat, splat)  # which has scales as they are, 0 as well

    export(name, read(splat), tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_gaussian_shows(name: str, tmp_path: Path) -> None:
    detail = failed(made(name, cloud(99), tmp_path), name, cloud(100))

    assert (detail["differs"], detail["wrote"], detail["found"]) == ("count", 100, 99)


@pytest.mark.parametrize(
    ("array", "column"),
    [("positions", "positions"), ("scales", "scales"), ("opacities", "opacities"), ("harmonics", "colors")],
)
@pytest.mark.parametrize("name", FORMATS)
def test_a_changed_value_shows(name: str, array: str, column: str, tmp_path: Path) -> None:
    path = made(name, cloud(100), tmp_path)
    other = cloud(100)
    values = getattr(other, array)
    values[50] = values[50] * 0.5 + 0.1

    # Another order along the curve makes of one moved Gaussian a difference in many columns.
    assert failed(path, name, other)["differs"] == column or array == "positions"


@pytest.mark.parametrize("name", FORMATS)
def test_a_turned_gaussian_shows(name: str, tmp_path: Path) -> None:
    path = made(name, cloud(100), tmp_path)
    other = cloud(100)
    other.rotations[50] = np.roll(other.rotations[50], 1)

    assert failed(path, name, other)["differs"] == "rotations"


@pytest.mark.parametrize("name", ["ply", "compressed_ply", "spz", "sog", "glb", "ksplat"])
def test_changed_harmonics_show(name: str, tmp_path: Path) -> None:
    path = made(name, cloud(100, 1), tmp_path)
    other = cloud(100, 1)
    other.harmonics[50, 2] += 0.3

    assert failed(path, name, other)["differs"] == "harmonics"


@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].degree_max])
@pytest.mark.parametrize(("wrote", "asked"), [(0, 1), (1, 0)])
def test_another_degree_shows(name: str, wrote: int, asked: int, tmp_path: Path) -> None:
    path = made(name, cloud(100, wrote), tmp_path)

    detail = failed(path, name, cloud(100, asked))

    assert (detail["differs"], detail["wrote"], detail["found"]) == ("degree", asked, wrote)


@pytest.mark.parametrize("name", ["ply", "glb"])
def test_a_value_that_is_no_number_shows(name: str, tmp_path: Path) -> None:
    path = made(name, cloud(100), tmp_path)
    first = cloud(100).positions[0, 0].tobytes()
    content = path.read_bytes()
    place = content.index(first, len(content) // 100)  # behind the header
    path.write_bytes(content[:place] + np.float32(np.nan).tobytes() + content[place + 4 :])

    assert failed(path, name, cloud(100))["differs"] == "positions"


@pytest.mark.parametrize("name", FORMATS)
def test_a_broken_file_shows(name: str, tmp_path: Path) -> None:
    path = made(name, cloud(100), tmp_path)
    path.write_bytes(path.read_bytes()[:-7])

    assert failed(path, name, cloud(100))["reader"] == "own"


@pytest.mark.parametrize("name", forge.NAMES)
def test_the_second_reader_is_asked(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(name, cloud(100), tmp_path)
    monkeypatch.setattr(
        forge, "read", lambda _content, _name: replace(cloud(100), opacities=cloud(100).scales[:, 0].copy())
    )

    assert failed(path, name, cloud(100))["reader"] == "gaussforge"
