"""The engine as a runner: stages, measurements, failures; and once through the real host."""

from __future__ import annotations

import math
import os
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tempa.core.errors import TempaError
from tempa.engines.host.engine_host import EngineHost
from tempa.engines.solid import opencascade
from tempa.engines.solid.about import OpencascadeBrep
from tempa.engines.solid.brep.flanged_tube import flanged_tube
from tempa.engines.solid.templates.tube import Tube
from tempa.jobs.ports import Broke, Made, MadeFile, Order, Report
from tests.integration.solid.sample import FORMATS, PARAMETERS, VOLUME, work

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

THREADS = Path("/proc/self/task")
MEDIA_TYPES = {
    "step": "model/step",
    "brep": "application/x-brep",
    "stl": "model/stl",
    "glb": "model/gltf-binary",
    "3mf": "model/3mf",
}


class Stages:
    """A progress callback that remembers."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float | None]] = []

    def __call__(self, stage: str, fraction: float | None = None) -> None:
        self.seen.append((stage, fraction))


@pytest.fixture
def stages() -> Stages:
    return Stages()


def run(asked: dict[str, Any], folder: Path, stages: Stages) -> Report:
    return opencascade.run(asked, folder, stages)


def test_loading_leaves_one_thread_and_a_silent_kernel(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = len(list(THREADS.iterdir()))
    opencascade.load()
    run(work(export_formats=FORMATS), tmp_path, Stages())
    assert len(list(THREADS.iterdir())) == before
    assert capfd.readouterr() == ("", "")


def test_files_come_in_the_order_asked_with_the_main_one_first(tmp_path: Path, stages: Stages) -> None:
    asked = ["3mf", "step", "glb"]
    report = run(work(export_formats=asked), tmp_path, stages)
    assert report.files == tuple(MadeFile(f"model.{name}", name, name, MEDIA_TYPES[name]) for name in asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.3mf", "model.glb", "model.step"]


def test_the_example_is_measured_as_the_contract_says(tmp_path: Path, stages: Stages) -> None:
    found = run(work(export_formats=["stl"]), tmp_path, stages).measurements
    assert found["volume"] == pytest.approx(VOLUME, rel=1e-12)
    assert found["reference"]["method"] == "closed-form"
    assert found["reference"]["volume"] == pytest.approx(VOLUME, rel=1e-14)
    assert found["reference"]["relative_error"] < 1e-12
    assert [found[name] for name in ("solids", "faces", "edges", "vertices")] == [1, 12, 28, 18]
    low, high = found["bounding_box"]
    assert low == pytest.approx([-60.25, -60.25, 0.0], abs=1e-6)
    assert high == pytest.approx([60.25, 60.25, 300.0], abs=1e-6)
    assert found["center_of_mass"] == pytest.approx([0.0, 0.0, 150.0], abs=1e-9)
    assert found["watertight"] is True
    assert found["triangles"] == ((tmp_path / "model.stl").stat().st_size - 84) // 50


def test_the_area_is_that_of_the_drawing(tmp_path: Path, stages: Stages) -> None:
    """Walls, ends and quarter tori, by Pappus."""
    R, r, L, f, h = 60.25, 22.5, 300.0, 2.5, 5.0  # noqa: N806 - as in the formula
    walls = 2.0 * math.pi * (R * (L - 2.0 * f) + r * L + 6.0 * h * L)
    ends = 2.0 * math.pi * ((R - f) ** 2 - r**2 - 6.0 * h**2)
    rims = 2.0 * 2.0 * math.pi * (R - f + f * 2.0 / math.pi) * f * math.pi / 2.0
    found = run(work(), tmp_path, stages).measurements
    assert found["area"] == pytest.approx(walls + ends + rims, rel=1e-12)


def test_without_a_mesh_format_nothing_is_meshed(tmp_path: Path, stages: Stages) -> None:
    report = run(work(export_formats=["step", "brep"]), tmp_path, stages)
    assert "triangles" not in report.measurements
    assert report.measurements["watertight"] is True
    assert [stage for stage, _ in stages.seen] == ["building", "checking", "exporting", "exporting"]


def test_asking_for_watertight_makes_a_mesh(tmp_path: Path, stages: Stages) -> None:
    report = run(work(checks={"watertight": True}), tmp_path, stages)
    assert report.measurements["triangles"] > 1000
    assert [path.name for path in tmp_path.iterdir()] == ["model.step"]


def test_progress_goes_forward(tmp_path: Path, stages: Stages) -> None:
    run(work(export_formats=FORMATS), tmp_path, stages)
    fractions = [fraction for _, fraction in stages.seen if fraction is not None]
    assert fractions == sorted(fractions)
    assert len(fractions) == len(stages.seen)
    assert list(dict.fromkeys(stage for stage, _ in stages.seen)) == [
        "building",
        "checking",
        "meshing",
        "exporting",
    ]


def test_a_part_that_fails_its_checks_leaves_no_file(tmp_path: Path, stages: Stages) -> None:
    with pytest.raises(TempaError) as failed:
        run(work(checks={"volume_max": 1.0, "solids": 1}), tmp_path, stages)
    assert failed.value.code == "CHECK_FAILED"
    assert [entry["check"] for entry in failed.value.detail["failed"]] == ["volume_max"]
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_cannot_build_is_reported_by_the_feature(
    tmp_path: Path, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tube: object) -> None:
        from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox

        BRepPrimAPI_MakeBox(0.0, 1.0, 1.0).Solid()

    monkeypatch.setattr(opencascade, "flanged_tube", fail)
    with pytest.raises(TempaError) as failed:
        run(work(), tmp_path, stages)
    assert (failed.value.code, failed.value.detail["radius"]) == ("FILLET_FAILED", 2.5)
    with pytest.raises(TempaError) as failed:
        run(work(parameters={"fillet_radius": 0.0}), tmp_path, stages)
    assert failed.value.code == "EMPTY_RESULT"


def test_a_part_of_the_wrong_volume_does_not_pass(
    tmp_path: Path, stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = Tube.of(PARAMETERS | {"inner_diameter": 45.0 * (1.0 + 1e-6)})
    monkeypatch.setattr(opencascade, "flanged_tube", lambda tube: flanged_tube(wider))
    with pytest.raises(TempaError) as failed:
        run(work(), tmp_path, stages)
    assert failed.value.code == "VOLUME_MISMATCH"


@pytest.mark.parametrize("fillet", [20.0, 33.0, 37.749])
def test_fillets_that_meet_the_holes_come_out_right_in_every_format(
    fillet: float, tmp_path: Path, stages: Stages
) -> None:
    """Each export is read back within the run; here the volume is the quadrature's."""
    asked = work(parameters={"fillet_radius": fillet}, export_formats=FORMATS)
    found = run(asked, tmp_path, stages).measurements
    assert found["reference"]["method"] == "quadrature"
    assert found["reference"]["relative_error"] < 1e-10


def test_a_fine_mesh_is_exported_in_time(
    tmp_path: Path, record_property: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reported, not asserted: seconds for each stage of a mesh within 0.01 mm."""
    times: list[tuple[str, float]] = []

    def note(stage: str, fraction: float | None = None) -> None:
        times.append((stage if stage != "exporting" else FORMATS[exported()], time.monotonic()))

    def exported() -> int:
        return sum(1 for name, _ in times if name in FORMATS)

    asked = work(export_formats=FORMATS, tolerance={"linear": 0.01, "angular": 3.0})
    triangles = opencascade.run(asked, tmp_path, note).measurements["triangles"]
    times.append(("end", time.monotonic()))
    seconds = {name: round(end - start, 3) for (name, start), (_, end) in pairwise(times)}
    record_property("triangles", triangles)
    record_property("seconds", seconds)
    with capsys.disabled():
        print(f"\n{triangles} triangles, seconds: {seconds}")  # noqa: T201 - the report
    assert triangles > 30_000


@pytest.fixture
async def host() -> AsyncIterator[EngineHost]:
    host = EngineHost()
    yield host
    await host.close()


def order(asked: dict[str, Any], folder: Path) -> Order:
    engine = OpencascadeBrep()
    folder.mkdir()
    return Order(engine.name, engine.module, engine.life_cycle, asked, folder, engine.limits)


async def test_through_the_host_a_request_becomes_the_files(host: EngineHost, tmp_path: Path) -> None:
    body = {"export_formats": FORMATS, "parameters": PARAMETERS}
    reading = OpencascadeBrep().read(body)
    assert reading.work is not None, reading.problems
    stages = Stages()
    made = await host.run(order(dict(reading.work), tmp_path / "job"), stages)
    assert isinstance(made, Made), made
    assert [file.name for file in made.files] == [f"model.{name}" for name in FORMATS]
    assert made.measurements["volume"] == pytest.approx(VOLUME, rel=1e-9)
    assert {path.name for path in (tmp_path / "job").iterdir()} == {f"model.{name}" for name in FORMATS}
    assert [stage for stage, _ in stages.seen][:2] == ["building", "checking"]


async def test_through_the_host_a_failed_check_arrives_whole(host: EngineHost, tmp_path: Path) -> None:
    broke = await host.run(order(work(checks={"volume_min": 3e6}), tmp_path / "job"), Stages())
    assert isinstance(broke, Broke)
    assert broke.error.code == "CHECK_FAILED"
    (entry,) = broke.error.detail["failed"]
    assert (entry["check"], entry["asked"]) == ("volume_min", 3e6)
    assert entry["found"] == pytest.approx(VOLUME, rel=1e-9)


def test_a_rehearsal_changes_no_byte(tmp_path: Path) -> None:
    """Each in a fork of its own, as in life: what a kernel has done before may show in what it writes."""
    folders = [tmp_path / "rehearsed", tmp_path / "not"]
    for folder in folders:
        folder.mkdir()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if folder.name == "rehearsed":
                    opencascade.rehearse()
                run(work(export_formats=FORMATS), folder, Stages())
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0

    first, second = ({file.name: file.read_bytes() for file in folder.iterdir()} for folder in folders)
    assert len(first) == len(FORMATS)
    assert first == second
