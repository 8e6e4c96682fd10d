"""What the engines of splats say of themselves, and how they read a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tempa.core.limits import DEFAULT_LIMITS, Limits
from tempa.engines.splat.about.convert import SplatConvert
from tempa.engines.splat.about.engine import SplatEngine
from tempa.engines.splat.about.mesh import MeshSplat
from tempa.engines.splat.about.relief import ReliefSplat
from tempa.engines.splat.formats.table import FORMATS
from tempa.engines.splat.relief.model import Options
from tempa.testing.pictures import toadstool

ENGINES: list[SplatEngine] = [ReliefSplat(), MeshSplat(), SplatConvert()]
MATTING = {"path": "/srv/matting.onnx", "sha256": "0" * 64}


def read(engine: SplatEngine, limits: Limits = DEFAULT_LIMITS, **body: Any) -> Any:
    reading = engine.read(body, limits)
    assert reading.work is not None, reading.problems
    return reading.work


def problems(engine: SplatEngine, limits: Limits = DEFAULT_LIMITS, **body: Any) -> set[str]:
    return {problem.pointer for problem in engine.read(body, limits).problems}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_empty_request_has_all_defaults_and_is_as_the_schema_says(engine: SplatEngine) -> None:
    work = read(engine)
    schema = engine.describe()["parameters"]
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(work["parameters"])
    assert work["parameters"].keys() == schema["properties"].keys()
    assert work["preview"] == {"width": 512, "height": 512, "turntable_frames": 0}
    assert work["export_formats"] == (["ply"] if engine.kind == "conv" else ["ply", "spz"])


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_problem_is_told_at_once(engine: SplatEngine) -> None:
    found = problems(
        engine,
        export_formats=["ply", "step", "ply"],
        parameters={"num_gaussians": 10**9, "odd": 1},
        preview={"width": 7, "turntable_frames": 1000},
    )
    assert found == {
        "/export_formats/1",
        "/export_formats/2",
        "/parameters/num_gaussians",
        "/parameters/odd",
        "/preview/width",
        "/preview/turntable_frames",
    }


@pytest.mark.parametrize("engine", [ReliefSplat(), MeshSplat()], ids=lambda engine: engine.name)
def test_the_count_of_gaussians_is_within_the_servers_limits(engine: SplatEngine) -> None:
    limits = Limits(num_gaussians_min=2000, num_gaussians_max=3000)
    assert read(engine, limits)["parameters"]["num_gaussians"] == 3000
    assert problems(engine, limits, parameters={"num_gaussians": 1999}) == {"/parameters/num_gaussians"}


def test_the_reliefs_defaults_are_the_models() -> None:
    assert Options.of(read(ReliefSplat())["parameters"]) == Options()


def test_the_same_request_written_otherwise_is_the_same_work() -> None:
    one = read(ReliefSplat(), parameters={"thickness": 1, "seed": 0.0}, export_format="ply")
    assert one == read(ReliefSplat(), parameters={"thickness": 1.0}, export_formats=["ply"])


@pytest.mark.parametrize(
    ("parameters", "pointer"),
    [
        ({"crop": {"min": [0, 0, 1], "max": [1, 1, 0]}}, "/parameters/crop/max"),
        ({"filter": {"scale_min": 2.0, "scale_max": 1.0}}, "/parameters/filter/scale_max"),
        ({"filter": {"sphere": {"center": [0, 0, 0], "radius": 0}}}, "/parameters/filter/sphere/radius"),
        ({"sh_degree": 4}, "/parameters/sh_degree"),
    ],
    ids=["crop", "scales", "sphere", "degree"],
)
def test_a_conversion_that_leaves_nothing_by_itself_is_refused(
    parameters: dict[str, Any], pointer: str
) -> None:
    assert problems(SplatConvert(), parameters=parameters) == {pointer}


def test_each_part_of_a_filter_has_its_default_beside_what_is_given() -> None:
    chosen = read(SplatConvert(), parameters={"filter": {"opacity_min": 0.5}})["parameters"]["filter"]
    assert chosen == {"opacity_min": 0.5, "scale_min": None, "scale_max": None, "sphere": None}


def test_a_picture_is_looked_at_and_a_mesh_is_not(tmp_path: Path) -> None:
    picture, text = tmp_path / "picture", tmp_path / "text"
    picture.write_bytes(toadstool(64))
    text.write_text("no picture")
    assert ReliefSplat().look("image", picture, {}, DEFAULT_LIMITS) is None
    problem = ReliefSplat().look("image", text, None, DEFAULT_LIMITS)
    assert problem is not None
    assert problem.code == "IMAGE_FORMAT_UNSUPPORTED"
    assert MeshSplat().look("mesh", text, None, DEFAULT_LIMITS) is None


def test_a_picture_is_held_to_the_servers_limits(tmp_path: Path) -> None:
    picture = tmp_path / "picture"
    picture.write_bytes(toadstool(64))
    limits = Limits(image_bytes=1024)
    problem = ReliefSplat().look("image", picture, {}, limits)
    assert problem is not None
    assert (problem.code, problem.limit) == ("IMAGE_TOO_LARGE", 1024)
    assert read(ReliefSplat(), limits)["bounds"] == {"bytes_max": 1024, "pixels_max": 64_000_000}
    assert "bounds" not in read(ReliefSplat())


def test_the_operators_matting_model_goes_along_with_the_work() -> None:
    engine = ReliefSplat(options={"matting": MATTING})
    assert read(engine)["matting"] == {**MATTING, "mean": [0.5, 0.5, 0.5], "std": [1.0, 1.0, 1.0]}
    assert "matting" not in read(ReliefSplat())


@pytest.mark.parametrize(
    "options",
    [{"odd": 1}, {"matting": {"path": "/x"}}, {"matting": {**MATTING, "path": "x"}}],
    ids=["unknown", "no hash", "no absolute path"],
)
def test_options_that_cannot_be_meant_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"odd|sha256|absolute"):
        ReliefSplat(options=options)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engine_offers_every_format_and_says_under_what_licence(engine: SplatEngine) -> None:
    about = engine.describe()
    assert about["export_formats"] == list(FORMATS)
    assert about["licences"]
    assert about["inputs"][0]["required"]
