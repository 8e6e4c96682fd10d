from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tempa.engines.splat.about.triposplat import TripoSplat
from tempa.engines.splat.triposplat.files import CODE, WEIGHTS
from tempa.jobs.ports import Housed

ENGINE = TripoSplat()


def read(**parameters: Any) -> Any:
    return ENGINE.read({"parameters": parameters})


def test_it_is_an_engine_with_a_process_of_its_own() -> None:
    assert isinstance(ENGINE, Housed)
    assert (ENGINE.life_cycle, ENGINE.lane, ENGINE.model) == ("resident", "gpu", "triposplat-v1")


def test_defaults_are_filled_in() -> None:
    work = read().work
    assert work is not None
    assert work["export_formats"] == ["ply", "spz"]
    assert work["parameters"] == {
        "num_gaussians": [262_144],
        "seed": 42,
        "steps": 20,
        "guidance_scale": 3.0,
        "shift": 3.0,
        "mask": "auto",
        "flood_tolerance": 10.0,
        "frame": None,
        "erode_radius": 1,
    }


def test_a_number_and_a_list_of_it_are_the_same_work() -> None:
    assert read(num_gaussians=65_536).work == read(num_gaussians=[65_536]).work


def test_the_most_come_first() -> None:
    assert read(num_gaussians=[32_768, 131_072, 65_536]).work["parameters"]["num_gaussians"] == [
        131_072,
        65_536,
        32_768,
    ]


WRONG = {
    "too_many": {"num_gaussians": 262_145},
    "too_few": {"num_gaussians": 1023},
    "twice": {"num_gaussians": [65_536, 65_536]},
    "none": {"num_gaussians": []},
    "five": {"num_gaussians": [1024, 2048, 4096, 8192, 16_384]},
    "no_step": {"steps": 0},
    "steps": {"steps": 51},
    "guidance": {"guidance_scale": 10.5},
    "shift": {"shift": 0.0},
    "seed": {"seed": -1},
    "mask": {"mask": "magic"},
    "frame": {"frame": 1},
    "erode": {"erode_radius": 9},
}


@pytest.mark.parametrize("parameters", WRONG.values(), ids=WRONG)
def test_what_is_out_of_bounds_is_refused(parameters: dict[str, Any]) -> None:
    reading = read(**parameters)
    assert reading.work is None
    (name,) = parameters
    assert {problem.pointer.split("/")[2] for problem in reading.problems} == {name}


def test_other_pins_are_another_version() -> None:
    other = TripoSplat(options={"pins": {"model.py": "0" * 64}})
    assert other.version != ENGINE.version
    assert TripoSplat(options={"device": "cpu"}).version != ENGINE.version
    assert TripoSplat(options={"live_preview": False}).version == ENGINE.version


WRONG_OPTIONS = {
    "device": {"device": "tpu"},
    "relative": {"checkout": "models/triposplat"},
    "unknown": {"cache": 1},
    "pin": {"pins": {"model.py": "abc"}},
    "file": {"pins": {"other.py": "0" * 64}},
}


@pytest.mark.parametrize("options", WRONG_OPTIONS.values(), ids=WRONG_OPTIONS)
def test_options_that_cannot_be_meant_are_told(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        TripoSplat(options=options)


def test_without_a_checkout_it_cannot_run() -> None:
    reason = ENGINE.unfit()
    assert reason is not None
    assert reason.code == "MODEL_NOT_INSTALLED"
    assert reason.hint is not None
    assert "tempa engine install" in reason.hint


def test_the_licences_are_told() -> None:
    told = " ".join(ENGINE.describe()["licences"])
    assert all(word in told for word in ("MIT", "DINOv3 License", "Apache-2.0"))


def test_every_file_has_a_pin_or_is_said_to_have_none() -> None:
    published = [*CODE.values(), *WEIGHTS.values()]
    assert [pin for pin in published if pin is not None and len(pin) != 64] == []
    assert published.count(None) == 2


def test_the_server_loads_nothing_heavy_for_it() -> None:
    code = (
        "import sys, tempa.engines.splat.about.triposplat as about; about.TripoSplat().describe();"
        "print([name for name in ('numpy', 'PIL', 'torch', 'numba') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert said.stdout.strip() == "[]"
