"""Cameras: where a picture is taken from, and how wide it looks.

A camera has the family's axes as its own: x to the right of its picture, y up, z towards the viewer.
It looks along its own -z, so a camera on the +z axis with no rotation sees the front. A picture's
column 0 is at the left, its row 0 at the top, and the centre of pixel (0, 0) lies at (0.5, 0.5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIDE_MAX = 16_384  # pixels: tile numbers fit into 16 bits, and a picture into memory
DEFAULT_FIELD_OF_VIEW = 40.0


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """A pinhole camera whose axis goes through the middle of its picture.

    - `width`, `height`: pixels, square ones.
    - `field_of_view_degrees`: vertical.
    - `rotation` (3, 3): from the frame to the camera's axes; its rows are those axes.
    - `position` (3,): of the pinhole, in the frame.
    """

    width: int
    height: int
    field_of_view_degrees: float
    rotation: NDArray[np.float64]
    position: NDArray[np.float64]

    def __post_init__(self) -> None:
        """A camera is made by us: what is wrong with one is a slip of ours."""
        assert min(self.width, self.height) >= 1, f"{self.width} x {self.height}"
        assert max(self.width, self.height) <= SIDE_MAX, f"{self.width} x {self.height}"
        assert 0.0 < self.field_of_view_degrees < 180.0, f"{self.field_of_view_degrees} degrees"
        assert self.rotation.shape == (3, 3), f"rotation: {self.rotation.shape}"
        assert self.position.shape == (3,), f"position: {self.position.shape}"

    @property
    def focal_pixels(self) -> float:
        """Distance of the picture's plane from the pinhole, in pixels: the same across and down."""
        return self.height / 2.0 / math.tan(math.radians(self.field_of_view_degrees) / 2.0)

    def project(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where points (n, 3) lie in the picture, (n, 2) as column and row, and how deep (n,) they are."""
        own = (np.asarray(points, np.float64) - self.position) @ self.rotation.T
        depths = -own[:, 2]
        middle = np.array((self.width / 2.0, self.height / 2.0))
        places = middle + self.focal_pixels * own[:, :2] * (1.0, -1.0) / depths[:, None]
        return places, depths


def orbit(
    yaw_degrees: float,
    pitch_degrees: float,
    distance: float,
    *,
    width: int = 512,
    height: int = 512,
    field_of_view_degrees: float = DEFAULT_FIELD_OF_VIEW,
    target: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Camera:
    """A camera that looks at `target` (the origin) from a distance, upright.

    Yaw 0 and pitch 0 is the front: the camera stands on +z. A greater yaw takes the camera to its
    right (yaw 90: on +x), a greater pitch takes it up (pitch 90: on +y).
    """
    yaw, pitch = math.radians(yaw_degrees), math.radians(pitch_degrees)
    backward = np.array(
        (math.sin(yaw) * math.cos(pitch), math.sin(pitch), math.cos(yaw) * math.cos(pitch)), np.float64
    )
    right = np.array((math.cos(yaw), 0.0, -math.sin(yaw)), np.float64)
    rotation = np.stack((right, np.cross(backward, right), backward))
    position = np.asarray(target, np.float64) + distance * backward
    return Camera(width, height, field_of_view_degrees, rotation, position)


def framing_distance(radius: float, field_of_view_degrees: float, *, margin: float = 1.05) -> float:
    """From where a sphere of this radius just fits into a square picture, with a margin around it."""
    return margin * radius / math.sin(math.radians(field_of_view_degrees) / 2.0)
