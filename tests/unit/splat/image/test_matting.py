"""The hook for an operator's model: what it is given, what is made of its answer, and what stops it.

The run time is a stand-in: it remembers what it was asked, and answers as the test has it.
"""

from __future__ import annotations

import hashlib
import sys
import types
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.image.foreground import cut_out
from tempa.engines.splat.image.matting import Matting
from tests.unit.splat.image.samples import coverage, disc

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

SIDE = 100


@dataclass
class RunTime:
    """Stands in for the module `onnxruntime`, and for its one session."""

    answer: Callable[[NDArray[np.float32]], Any]
    side: Any = SIDE
    loaded: list[tuple[bytes, Any]] = field(default_factory=list)
    inputs: list[NDArray[np.float32]] = field(default_factory=list)

    def module(self) -> types.ModuleType:
        module = types.ModuleType("onnxruntime")
        module.SessionOptions = types.SimpleNamespace  # type: ignore[attr-defined]
        module.InferenceSession = self.load  # type: ignore[attr-defined]
        return module

    def load(self, data: bytes, options: Any, providers: list[str]) -> RunTime:
        assert providers == ["CPUExecutionProvider"]
        assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
        self.loaded.append((data, options))
        return self

    def get_inputs(self) -> list[Any]:
        return [types.SimpleNamespace(name="picture", shape=[1, 3, self.side, self.side])]

    def run(self, _outputs: None, feed: dict[str, NDArray[np.float32]]) -> list[Any]:
        self.inputs.append(feed["picture"])
        return [self.answer(feed["picture"])]


def right(_: NDArray[np.float32]) -> NDArray[np.float64]:
    return coverage(SIDE, 25.0)[None, None]


@pytest.fixture
def run_time(monkeypatch: pytest.MonkeyPatch) -> RunTime:
    run_time = RunTime(right)
    monkeypatch.setitem(sys.modules, "onnxruntime", run_time.module())
    return run_time


@pytest.fixture
def model(tmp_path: Path) -> Matting:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"weights")
    return Matting(str(path), hashlib.sha256(b"weights").hexdigest())


def cluttered() -> NDArray[np.uint8]:
    return disc(wall=np.random.default_rng(5).integers(0, 256, (200, 200, 3)))


def refusal(model: Matting | None, mask: str = "model") -> TempaError:
    with pytest.raises(TempaError) as caught:
        cut_out(cluttered(), mask, matting=model)
    return caught.value


def test_its_alpha_is_taken(run_time: RunTime, model: Matting) -> None:
    rgba, way = cut_out(cluttered(), "auto", matting=model)
    assert way == "model"
    assert np.abs(rgba[..., 3] / 255 - coverage()).mean() < 0.01
    assert run_time.loaded[0][0] == b"weights"


def test_it_gets_the_picture_in_its_own_size_and_range(run_time: RunTime, model: Matting) -> None:
    scaled = Matting(model.path, model.sha256, mean=(0.0, 0.5, 0.25), std=(1.0, 0.5, 2.0))
    cut_out(disc(), "model", matting=scaled)
    (given,) = run_time.inputs
    assert given.shape == (1, 3, SIDE, SIDE)
    assert given.dtype == np.float32
    color = np.array([60, 40, 160]) / 255
    assert given[0, :, 50, 50] == pytest.approx((color - (0, 0.5, 0.25)) / (1, 0.5, 2), abs=1e-6)


def test_a_model_for_any_size_gets_1024(run_time: RunTime, model: Matting) -> None:
    run_time.side = "height"
    run_time.answer = lambda given: np.ones((1, 1, *given.shape[2:]))
    refusal(model)
    assert run_time.inputs[0].shape == (1, 3, 1024, 1024)


def test_what_it_says_before_its_last_step_is_understood(run_time: RunTime, model: Matting) -> None:
    run_time.answer = lambda _: np.where(coverage(SIDE, 25.0) > 0.5, 9.0, -9.0)[None]
    rgba, _ = cut_out(cluttered(), "model", matting=model)
    assert (rgba[100, 100, 3], rgba[5, 5, 3]) == (255, 0)


def test_nothing_plainer_is_passed_over_for_it(run_time: RunTime, model: Matting) -> None:
    assert cut_out(disc(), "auto", matting=model)[1] == "border-flood"
    assert run_time.loaded == []


def test_what_leaves_nothing_out_is_told(run_time: RunTime, model: Matting) -> None:
    run_time.answer = lambda _: np.ones((1, 1, SIDE, SIDE))
    error = refusal(model)
    assert (error.code, error.detail["reason"]) == ("NO_FOREGROUND", "fills_frame")


def test_what_is_not_the_pinned_file_is_not_loaded(run_time: RunTime, model: Matting) -> None:
    error = refusal(Matting(model.path, "0" * 64))
    assert error.code == "MASK_PROVIDER_UNAVAILABLE"
    assert "SHA-256" in error.message
    assert run_time.loaded == []


def test_a_pin_may_be_in_capitals(run_time: RunTime, model: Matting) -> None:
    assert cut_out(cluttered(), "model", matting=Matting(model.path, model.sha256.upper()))[1] == "model"


def test_a_file_that_is_gone_is_told_without_its_path(run_time: RunTime, tmp_path: Path) -> None:
    error = refusal(Matting(str(tmp_path / "gone"), "0" * 64))
    assert error.code == "MASK_PROVIDER_UNAVAILABLE"
    assert str(tmp_path) not in f"{error.message} {error.hint} {error.detail}"


def test_without_a_model_there_is_none() -> None:
    error = refusal(None)
    assert (error.code, error.retryable) == ("MASK_PROVIDER_UNAVAILABLE", False)
    assert error.hint


def test_without_the_run_time_it_is_said(monkeypatch: pytest.MonkeyPatch, model: Matting) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    error = refusal(model)
    assert error.code == "MASK_PROVIDER_UNAVAILABLE"
    assert "onnxruntime" in error.message


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: np.ones((1, 1, 7, 7)),
        lambda _: np.full((1, 1, SIDE, SIDE), np.nan),
        lambda _: 1 / 0,
    ],
    ids=["another-size", "not-finite", "broken"],
)
def test_an_answer_that_is_no_alpha_is_told(run_time: RunTime, model: Matting, answer: Any) -> None:
    run_time.answer = answer
    assert refusal(model).code == "MASK_PROVIDER_UNAVAILABLE"


def test_a_model_for_huge_pictures_is_refused(run_time: RunTime, model: Matting) -> None:
    run_time.side = 100_000
    assert refusal(model).code == "MASK_PROVIDER_UNAVAILABLE"
    assert run_time.inputs == []
