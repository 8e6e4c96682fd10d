"""The engine on files, as its child process runs it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gsply
import numpy as np
import pytest
from PIL import Image

from bench.splat import pictures
from tempa.core.errors import TempaError
from tempa.engines.splat import relief_splat
from tempa.engines.splat.relief.model import Made, relief

COUNT = 8192


def work(**changes: Any) -> dict[str, Any]:
    return {
        "image": {"sha256": "0" * 64, "file_size_bytes": 1},
        "parameters": {"num_gaussians": COUNT, "seed": 0},
        "export_formats": ["spz", "ply"],
        "preview": {"width": 128, "height": 96, "turntable_frames": 0},
        **changes,
    }


def folder_with(tmp_path: Path, image: Image.Image, depth: Image.Image | None = None) -> Path:
    (tmp_path / "inputs").mkdir()
    image.save(tmp_path / relief_splat.IMAGE, "PNG")
    if depth is not None:
        depth.save(tmp_path / relief_splat.DEPTH, "PNG")
    return tmp_path


@pytest.fixture(scope="module")
def mug() -> Image.Image:
    return Image.fromarray(pictures.mug()).reduce(2)


def run(folder: Path, told: list[tuple[str, float | None]] | None = None, **changes: Any) -> Any:
    stages: list[tuple[str, float | None]] = [] if told is None else told
    return relief_splat.run(
        work(**changes), folder, lambda stage, fraction=None: stages.append((stage, fraction))
    )


def test_writes_what_is_asked_for(tmp_path: Path, mug: Image.Image) -> None:
    report = run(folder_with(tmp_path, mug))
    assert [made.role for made in report.files] == ["gaussian_ply", "spz", "rendered_preview"]
    assert all((tmp_path / made.name).stat().st_size > 0 for made in report.files)


def test_says_what_it_is(tmp_path: Path, mug: Image.Image) -> None:
    measured = run(folder_with(tmp_path, mug)).measurements
    assert measured["method"] == "relief"
    assert measured["unseen_surface"] == "mirrored"
    assert measured["depth"] == "inflated"
    assert measured["mask"] == "alpha"
    assert 0.9 * COUNT <= measured["gaussians"] <= COUNT
    json.dumps(measured)


def test_the_result_passes_the_gate(
    tmp_path: Path, mug: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_few(*given: Any, **options: Any) -> Made:
        made = relief(*given, **options)
        return replace(made, gaussians=made.gaussians.take(np.arange(COUNT // 2)))

    monkeypatch.setattr(relief_splat, "relief", too_few)
    folder = folder_with(tmp_path, mug)
    with pytest.raises(TempaError) as raised:
        run(folder)
    assert raised.value.code == "DEGENERATE_OUTPUT"
    assert not (tmp_path / "model.ply").exists()


def test_another_reader_counts_the_same(tmp_path: Path, mug: Image.Image) -> None:
    report = run(folder_with(tmp_path, mug))
    assert len(gsply.plyread(str(tmp_path / "model.ply")).means) == report.measurements["gaussians"]


def test_preview_shows_the_subject(tmp_path: Path, mug: Image.Image) -> None:
    run(folder_with(tmp_path, mug))
    shown = np.asarray(Image.open(tmp_path / "preview.png").convert("RGB"), np.int64)
    assert shown.shape == (96, 128, 3)
    blue = (shown[..., 2] > shown[..., 0] + 40).mean()  # the mug's printed band
    assert 0.01 < blue < 0.3


def test_stages_go_forward(tmp_path: Path, mug: Image.Image) -> None:
    told: list[tuple[str, float | None]] = []
    run(folder_with(tmp_path, mug), told)
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["reading", "modelling", "fitting", "checking", "exporting", "rendering"]
    fractions = [fraction for _, fraction in told if fraction is not None]
    assert fractions == sorted(fractions)


def test_two_processes_write_the_same_bytes(tmp_path: Path) -> None:
    """Two processes: a number that depends on addresses or hashes would differ."""
    code = (
        "import json, sys; from pathlib import Path; from tempa.engines.splat import relief_splat as r; "
        "r.load(); r.rehearse(); r.run(json.loads(sys.argv[1]), Path(sys.argv[2]), lambda *_: None)"
    )
    hashes = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        folder_with(folder, Image.fromarray(pictures.mug()).reduce(2))
        subprocess.run([sys.executable, "-c", code, json.dumps(work()), str(folder)], check=True, timeout=60)
        made = ("model.ply", "model.spz", "preview.png")
        hashes.append([hashlib.sha256((folder / each).read_bytes()).hexdigest() for each in made])
    assert hashes[0] == hashes[1]


def test_loading_starts_no_thread() -> None:
    code = (
        "from tempa.engines.splat import relief_splat as r; r.load(); "
        "from pathlib import Path; print(len(list(Path('/proc/self/task').iterdir())))"
    )
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # as a zygote has it
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True, env=alone)
    assert done.stdout.split()[-1] == "1"


def test_seed_changes_nothing(tmp_path: Path, mug: Image.Image) -> None:
    made = []
    for seed in (0, 7):
        folder = tmp_path / str(seed)
        folder.mkdir()
        run(folder_with(folder, mug), parameters={"num_gaussians": COUNT, "seed": seed})
        made.append((folder / "model.ply").read_bytes())
    assert made[0] == made[1]


def test_depth_image_is_used(tmp_path: Path, mug: Image.Image) -> None:
    ramp = np.broadcast_to(np.linspace(0, 65535, mug.width).astype(np.uint16), (mug.height, mug.width))
    folder = folder_with(tmp_path, mug, Image.fromarray(np.ascontiguousarray(ramp)))
    report = run(folder, depth={"sha256": "0" * 64, "file_size_bytes": 1})
    assert report.measurements["depth"] == "given"
    centres = gsply.plyread(str(tmp_path / "model.ply")).means
    slope = np.polyfit(centres[:, 0], centres[:, 2], 1)[0]
    assert abs(slope) > 0.2


@pytest.mark.parametrize(
    ("depth", "kind", "code"),
    [
        pytest.param(Image.new("I;16", (384, 200)), "PNG", "IMAGE_ASPECT_RATIO", id="shape"),
        pytest.param(Image.new("L", (384, 384)), "JPEG", "IMAGE_FORMAT_UNSUPPORTED", id="format"),
        pytest.param(Image.new("L", (32, 32)), "PNG", "IMAGE_TOO_SMALL", id="size"),
        pytest.param(Image.new("F", (384, 384), float("nan")), "TIFF", "IMAGE_UNREADABLE", id="no-number"),
    ],
)
def test_depth_image_is_refused(
    tmp_path: Path, mug: Image.Image, depth: Image.Image, kind: str, code: str
) -> None:
    folder = folder_with(tmp_path, mug)
    depth.save(folder / relief_splat.DEPTH, kind)
    with pytest.raises(TempaError) as raised:
        run(folder, depth={})
    assert raised.value.code == code
    assert raised.value.hint or code != "IMAGE_ASPECT_RATIO", "what shape it needs"


def test_truncated_depth_image_is_unreadable(tmp_path: Path, mug: Image.Image) -> None:
    noise = np.random.default_rng(1).integers(0, 65535, (384, 384), np.uint16)
    folder = folder_with(tmp_path, mug, Image.fromarray(noise))
    path = folder / relief_splat.DEPTH
    path.write_bytes(path.read_bytes()[:20_000])
    with pytest.raises(TempaError) as raised:
        run(folder, depth={})
    assert raised.value.code == "IMAGE_UNREADABLE"


def test_nothing_visible_is_no_foreground(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, Image.new("RGBA", (128, 128), (255, 0, 0, 0)))
    with pytest.raises(TempaError) as raised:
        run(folder)
    assert raised.value.code == "NO_FOREGROUND"


def test_rehearsal_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relief_splat.rehearse()
    assert not list(tmp_path.iterdir())
