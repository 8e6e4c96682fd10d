from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation  # type: ignore[import-untyped, unused-ignore]

from tempa.engines.splat.triposplat.cloud import gaussians


class Tensor:
    """What the adapter asks of one."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def detach(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self._values.astype(np.float32))

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> Any:
        return self._values


def decoded(**given: Any) -> Any:
    """As the decoder gives them: two Gaussians, one on the model's y axis, one on its z axis."""
    values = {
        "get_xyz": [[0.1, 0.2, 0.0], [0.0, 0.0, 0.4]],
        "get_scaling": [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]],
        "get_opacity": [[0.25], [0.75]],
        "_rotation": [[0.0, 0.0, 0.0, 0.0], [0.5, 0.3, -0.2, 0.9]],
        "_features_dc": [[[0.1, 0.2, 0.3]], [[-0.1, 0.0, 1.0]]],
        "rots_bias": [1.0, 0.0, 0.0, 0.0],
    }
    return SimpleNamespace(**{name: Tensor(value) for name, value in (values | given).items()})


# Upstream's own turn for a .ply, whose y is down and z forward; (x, -y, -z) of that is the family's frame.
UPSTREAM = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
TURN = np.diag([1, -1, -1]) @ UPSTREAM


def test_positions_are_turned_as_upstream_turns_them() -> None:
    found = gaussians(decoded()).positions
    assert np.allclose(found, np.array([[0.1, 0.2, 0.0], [0.0, 0.0, 0.4]]) @ TURN.T)
    assert found[1, 1] == pytest.approx(0.4)  # what is up there is up here


def test_orientations_are_turned_with_them() -> None:
    wxyz = np.array([[1.0, 0.0, 0.0, 0.0], [1.5, 0.3, -0.2, 0.9]])  # with the bias
    expected = TURN @ Rotation.from_quat(wxyz[:, [1, 2, 3, 0]]).as_matrix()
    found = Rotation.from_quat(gaussians(decoded()).rotations[:, [1, 2, 3, 0]]).as_matrix()
    assert np.allclose(found, expected, atol=1e-6)


def test_quaternions_have_unit_length() -> None:
    assert np.allclose(np.linalg.norm(gaussians(decoded()).rotations, axis=1), 1.0, atol=1e-6)


def test_the_rest_is_taken_as_it_is() -> None:
    found = gaussians(decoded())
    assert np.allclose(found.scales, [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]])
    assert np.allclose(found.opacities, [0.25, 0.75])
    assert np.allclose(found.harmonics, [[[0.1, 0.2, 0.3]], [[-0.1, 0.0, 1.0]]])


def test_a_quaternion_of_no_length_becomes_none() -> None:
    found = gaussians(decoded(_rotation=[[-1.0, 0, 0, 0], [0, 0, 0, 0]])).rotations
    assert found[0].tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", ["get_xyz", "get_scaling", "get_opacity", "_rotation", "_features_dc"])
def test_what_is_not_finite_stays_so_for_the_gate_to_see(name: str) -> None:
    values = decoded()
    array = getattr(values, name).numpy().astype(np.float32)
    array.flat[0] = np.nan
    found = gaussians(decoded(**{name: array}))
    assert any(
        np.isnan(part).any()
        for part in (found.positions, found.scales, found.rotations, found.opacities, found.harmonics)
    )
