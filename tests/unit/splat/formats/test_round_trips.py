"""Every format gives back what was written, within the bounds that its table states."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.formats import palette
from tempa.engines.splat.formats.files import read, recognized, write
from tempa.engines.splat.formats.source import mapped
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import COEFFICIENTS, Gaussians
from tests.unit.splat.formats.clouds import ARMS, arms, cloud, covariances, stored

NAMES = list(FORMATS)


def made(name: str, gaussians: Gaussians, folder: Path) -> Path:
    path = folder / FORMATS[name].file_name
    write(name, gaussians, path)
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def spread(values: np.ndarray) -> float:
    return float(np.ptp(values)) if values.size else 0.0


def angles(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Degrees, by the quaternions' distance: the arc cosine of nearly 1 has no digits left."""
    apart = np.minimum(np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1))
    return np.asarray(np.degrees(4 * np.arcsin(apart / 2)))


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_values_come_back_within_the_stated_bounds(name: str, degree: int, tmp_path: Path) -> None:
    form, accuracy = FORMATS[name], FORMATS[name].accuracy
    wrote = stored(name, cloud(600, degree))
    found = read(made(name, cloud(600, degree), tmp_path))
    kept = min(degree, form.degree_max)
    logs = np.log(wrote.scales)

    assert (len(found), found.degree) == (600, kept)
    assert np.abs(found.positions - wrote.positions).max() <= accuracy.position * 0.5
    assert np.abs(np.log(found.scales) - logs).max() <= accuracy.scale + accuracy.of_range * spread(logs)
    assert angles(found.rotations, wrote.rotations).max() <= accuracy.rotation_degrees
    assert np.abs(found.opacities - wrote.opacities).max() <= accuracy.opacity
    assert np.abs(found.colors - wrote.colors).max() <= accuracy.color + accuracy.of_range
    rest = np.clip(wrote.harmonics[:, 1 : COEFFICIENTS[kept]], *accuracy.harmonics_range)
    bound = (accuracy.harmonics or 0.0) + accuracy.of_range * spread(rest)
    assert np.abs(found.harmonics[:, 1:] - rest).max(initial=0) <= bound


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257])
@pytest.mark.parametrize("name", NAMES)
def test_any_number_comes_back(name: str, count: int, tmp_path: Path) -> None:
    found = read(made(name, cloud(count), tmp_path))

    wrote = stored(name, cloud(count))
    assert found.positions == pytest.approx(wrote.positions, abs=1e-3)
    assert found.opacities == pytest.approx(wrote.opacities, abs=0.003)


@pytest.mark.parametrize("name", NAMES)
def test_one_place_and_one_look_come_back(name: str, tmp_path: Path) -> None:
    alike = cloud(1, 1).take(np.zeros(300, int))

    found = read(made(name, alike, tmp_path))

    assert found.positions == pytest.approx(alike.positions, abs=1e-5)
    assert np.log(found.scales) == pytest.approx(np.log(alike.scales), abs=0.04)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bytes_each_time(name: str, tmp_path: Path) -> None:
    first = digest(made(name, cloud(70_000 if name == "spz" else 2_000, 2), tmp_path))

    assert digest(made(name, cloud(70_000 if name == "spz" else 2_000, 2), tmp_path)) == first


def test_the_number_of_cores_shows_in_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gaussians = cloud(150_000)  # three blocks of compression
    digests = set()
    for cores in (1, 2, 7):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)))
        digests.add(digest(made("spz", gaussians, tmp_path)))

    assert len(digests) == 1


def test_a_file_tells_no_time(tmp_path: Path) -> None:
    with zipfile.ZipFile(made("sog", cloud(9, 1), tmp_path)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert made("spz", cloud(9), tmp_path).read_bytes()[4:8] == bytes(4)  # RFC 1952: MTIME


@pytest.mark.parametrize("name", NAMES)
def test_the_object_stands_as_it_stood(name: str, tmp_path: Path) -> None:
    found = read(made(name, arms(), tmp_path))

    for axis, arm in enumerate(ARMS):
        mine = np.argmax(found.colors, axis=1) == axis
        assert mine.sum() == 40
        far = found.positions[mine] @ np.array(arm.direction)
        assert far.max() == pytest.approx(arm.length, abs=1e-3)
        assert far.min() == pytest.approx(0.05, abs=1e-3)
        widest = np.sqrt(covariances(found.scales[mine], found.rotations[mine])[:, axis, axis])
        assert widest == pytest.approx(3 * arm.thickness, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    path = made(name, cloud(64), tmp_path).rename(tmp_path / "file")

    assert recognized(mapped(path)) == name


@pytest.mark.parametrize("name", NAMES)
def test_an_opacity_of_none_or_all_survives(name: str, tmp_path: Path) -> None:
    gaussians = cloud(2)
    gaussians.opacities[:] = (0.0, 1.0)

    found = read(made(name, gaussians, tmp_path))

    assert sorted(found.opacities.tolist()) == pytest.approx([0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_a_colour_survives_an_opacity_of_none(name: str, tmp_path: Path) -> None:
    gaussians = cloud(9)
    gaussians.opacities[:] = 0.0

    found = read(made(name, gaussians, tmp_path))

    assert found.colors == pytest.approx(stored(name, gaussians).colors, abs=0.005)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("array", ["positions", "scales", "rotations", "opacities", "harmonics"])
def test_what_is_not_finite_is_not_written(name: str, array: str, tmp_path: Path) -> None:
    gaussians = cloud(3)
    getattr(gaussians, array)[1] = np.nan

    with pytest.raises(TempaError, match="EXPORT_FAILED"):
        write(name, gaussians, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_nothing_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(TempaError, match="EXPORT_FAILED"):
        write("ply", cloud(0), tmp_path / "file")


def test_spz_tells_that_a_scene_is_too_large_for_it(tmp_path: Path) -> None:
    gaussians = cloud(2)
    gaussians.positions[0, 0] = 9e6

    with pytest.raises(TempaError, match="EXPORT_FAILED"):
        write("spz", gaussians, tmp_path / "file")


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0, 1e5])
def test_spz_keeps_sixteen_bits_of_a_scene_of_any_size(size: float, tmp_path: Path) -> None:
    gaussians = cloud(200)
    gaussians.positions[:] *= 2 * size

    found = read(made("spz", gaussians, tmp_path))

    whole = np.ceil(np.log2(np.abs(gaussians.positions).max()))
    step = 2.0 ** max(whole - 16, -24)  # the finest that 24 bits have
    assert np.abs(found.positions - gaussians.positions).max() <= step / 2


def test_a_last_block_of_a_compressed_ply_is_as_fine_as_any(tmp_path: Path) -> None:
    """300 are a block and a part; all lie in a box of 0.01, far from the origin."""
    gaussians = cloud(300)
    gaussians.positions[:] = 5.0 + 0.01 * gaussians.positions

    found = read(made("compressed_ply", gaussians, tmp_path))

    apart = np.abs(found.positions - stored("compressed_ply", gaussians).positions)
    assert apart.max() <= 0.01 / 1023 / 2 + 1e-6


def test_palette_of_vectors_is_exact_as_long_as_it_has_room() -> None:
    vectors = np.random.default_rng(1).normal(size=(500, 9)).astype(np.float32)

    found, labels = palette.of_vectors(vectors)

    assert np.array_equal(found[labels], vectors)


def test_palette_of_vectors_beats_one_mean_by_far_beyond_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(palette, "VECTORS_MAX", 256)
    vectors = np.random.default_rng(1).normal(size=(4000, 3)).astype(np.float32)

    found, labels = palette.of_vectors(vectors)

    assert len(found) == 256
    assert np.bincount(labels, minlength=256).min() >= 4000 // 256
    assert np.square(found[labels] - vectors).mean() < 0.1 * vectors.var()


def test_palette_of_values_bounds_every_error() -> None:
    values = np.concatenate((np.random.default_rng(1).normal(size=5000), [40.0])).astype(np.float32)

    table, numbers = palette.of_values(values)

    assert np.abs(table[numbers] - values).max() <= 1.01 * np.ptp(values) / 254
    assert np.square(table[numbers] - values).mean() < np.square(np.ptp(values) / 255).mean() / 12 / 4
