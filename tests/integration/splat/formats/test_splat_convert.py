"""The engine `splat-convert`: a file becomes other files, edited on the way, and says what it did."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat import splat_convert
from tempa.engines.splat.formats.files import read, write
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.gaussians import Gaussians
from tempa.jobs.ports import Report
from tests.unit.splat.formats.clouds import cloud

DEFAULTS: Mapping[str, Any] = {
    "filter": {"opacity_min": 0.0, "scale_min": None, "scale_max": None, "sphere": None},
    "crop": None,
    "num_gaussians": None,
    "sh_degree": None,
    "order": "as_is",
    "source_axes": None,
}


PREVIEW = {"width": 64, "height": 64, "turntable_frames": 0}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def converted(
    folder: Path, gaussians: Gaussians, *formats: str, source: str = "ply", stages: list[str] | None = None,
    **parameters: Any,
) -> Report:  # fmt: skip
    """The report of a run in `folder`, on a file of `source`'s format."""
    path = folder / "inputs" / "file"
    path.parent.mkdir()
    write(source, gaussians, path)
    work = {
        "file": {"sha256": digest(path), "file_size_bytes": path.stat().st_size},
        "parameters": {**DEFAULTS, **parameters},
        "export_formats": list(formats),
        "preview": PREVIEW,
    }
    return splat_convert.run(work, folder, lambda stage, _=None: (stages or []).append(stage))


def test_every_format_becomes_every_other(tmp_path: Path) -> None:
    splat_convert.load()
    for source in FORMATS:
        folder = tmp_path / source
        folder.mkdir()
        report = converted(folder, cloud(300), *FORMATS, source=source)

        files = [file for file in report.files if file.file_format in FORMATS]
        assert [file.file_format for file in files] == list(FORMATS)
        assert report.files[-1].role == "rendered_preview"
        assert report.measurements["source"]["file_format"] == source
        for file in files:
            assert len(read(folder / file.name, file.file_format)) == 300


def test_the_report_tells_of_source_and_result(tmp_path: Path) -> None:
    gaussians = cloud(200, 1)
    gaussians.positions[:] = np.random.default_rng(2).uniform((-1, 0, 2), (1, 4, 3), (200, 3))

    told = converted(tmp_path, gaussians, "ply").measurements

    content = (tmp_path / "inputs/file").read_bytes()
    assert told["source"] == {
        "sha256": hashlib.sha256(content).hexdigest(), "file_size_bytes": len(content), "file_format": "ply",
        "gaussians": 200, "sh_degree": 1,
    }  # fmt: skip
    assert told["bounding_box"] == [
        gaussians.positions.min(axis=0).tolist(),
        gaussians.positions.max(axis=0).tolist(),
    ]
    assert told["opacity"]["mean"] == pytest.approx(gaussians.opacities.mean(), abs=1e-6)
    assert told["opacity"]["median"] == pytest.approx(np.median(gaussians.opacities), abs=1e-6)
    assert (told["gaussians"], told["sh_degree"]) == (200, 1)
    assert told["steps"] == [{"step": "finite", "gaussians": 200, "removed": 0}]


def test_steps_tell_what_each_removed(tmp_path: Path) -> None:
    gaussians = cloud(1000, 2)
    sphere = {"center": [0, 0, 0], "radius": 0.6}

    report = converted(
        tmp_path, gaussians, "ply", order="morton", num_gaussians=100, sh_degree=1,
        filter={"opacity_min": 0.2, "scale_min": 0.005, "scale_max": 0.04, "sphere": sphere},
        crop={"min": [-0.5, -0.5, -0.2], "max": [0.5, 0.5, 0.5]},
    )  # fmt: skip

    steps = report.measurements["steps"]
    assert [step["step"] for step in steps] == [
        "finite", "opacity", "scale", "sphere", "crop", "sh_degree", "num_gaussians", "order",
    ]  # fmt: skip
    assert 1000 - sum(step["removed"] for step in steps) == steps[-1]["gaussians"] == 100
    assert all(step["removed"] > 0 for step in steps[1:5])
    found = read(tmp_path / "model.ply")
    assert (len(found), found.degree) == (100, 1)
    assert found.positions[:, 2].min() >= -0.2


def test_broken_gaussians_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "inputs/file"
    gaussians = cloud(50)

    def broken(name: str, whole: Gaussians, to: Path) -> None:
        write(name, whole, to)
        content = bytearray(to.read_bytes())
        content[-68:-64] = np.float32(np.nan).tobytes()
        to.write_bytes(content)

    path.parent.mkdir()
    broken("ply", gaussians, path)
    work = {
        "file": {"url": "https://example.com/a"},
        "parameters": DEFAULTS,
        "export_formats": ["splat"],
        "preview": PREVIEW,
    }
    report = splat_convert.run(work, tmp_path, lambda *_: None)

    assert report.measurements["steps"][0] == {"step": "finite", "gaussians": 49, "removed": 1}
    assert report.measurements["source"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_when_nothing_is_left_it_says_which_step_it_was(tmp_path: Path) -> None:
    with pytest.raises(TempaError) as raised:
        converted(tmp_path, cloud(50), "ply", crop={"min": [9, 9, 9], "max": [10, 10, 10]})

    assert raised.value.code == "DEGENERATE_OUTPUT"
    assert raised.value.detail["steps"][-1] == {"step": "crop", "gaussians": 0, "removed": 50}


@pytest.mark.parametrize("content", [b"", b"solid of nothing", b"ply\nformat ascii 1.0\nend_header\n"])
def test_what_is_no_file_of_gaussians_fails_to_import(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/file").write_bytes(content)
    work = {"file": {}, "parameters": DEFAULTS, "export_formats": ["ply"]}

    with pytest.raises(TempaError, match="IMPORT_FAILED"):
        splat_convert.run(work, tmp_path, lambda *_: None)


def test_what_is_of_no_format_is_told_which_ones_are_read(tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs/file").write_bytes(b"\xff\xd8\xff\xe0 a photograph")

    with pytest.raises(TempaError) as raised:
        splat_convert.run({"parameters": DEFAULTS}, tmp_path, lambda *_: None)

    hint = raised.value.hint or ""
    names = (".compressed.ply", ".glb", ".ksplat", ".ply", ".sog", ".splat", ".spz")
    assert [name for name in names if f" {name}" not in hint] == []


def test_a_file_in_other_axes_is_set_upright(tmp_path: Path) -> None:
    """An .spz in a .ply's axes, as plain converters make it."""
    gaussians = cloud(60)
    gaussians.positions[:, 1:] *= -1

    converted(tmp_path, gaussians, "ply", source="spz", source_axes="RDF")

    assert read(tmp_path / "model.ply").positions == pytest.approx(cloud(60).positions, abs=1e-4)


def test_the_same_request_gives_the_same_bytes(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        report = converted(tmp_path / name, cloud(2000, 1), *FORMATS, num_gaussians=500, order="morton")
        digests.append([digest(tmp_path / name / file.name) for file in report.files])

    assert digests[0] == digests[1]
