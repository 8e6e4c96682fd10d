"""An operator's matting model: an ONNX file from a path that the settings name, with its SHA-256.

Takes a picture of 1 x 3 x S x S and gives an alpha of S x S, as ISNet, U2-Net and BiRefNet are published.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SIDE = 1024  # where the model takes any
_SIDE_MAX = 2048


@dataclass(frozen=True, slots=True)
class Matting:
    """A model file and how it wants its colours: (sRGB from 0 to 1 - `mean`) / `std`."""

    path: str
    sha256: str
    mean: tuple[float, float, float] = (0.5, 0.5, 0.5)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)


def alpha(pixels: NDArray[np.uint8], model: Matting) -> NDArray[np.uint8]:
    """The model's alpha for `pixels` (height, width, 4).

    Raises TempaError: MASK_PROVIDER_UNAVAILABLE if it is not there, not the pinned one, or does not run.
    """
    session = _session(_pinned(model))
    side = _side(session)
    height, width = pixels.shape[:2]
    try:
        raw = session.run(None, {session.get_inputs()[0].name: _input(pixels, side, model)})[0]
        matte = np.asarray(raw, np.float32).reshape(side, side)
    except Exception as error:  # of onnxruntime's own kinds, or of another shape than an alpha's
        raise _unavailable("The matting model does not run on this picture.") from error
    if not np.isfinite(matte).all():
        raise _unavailable("The matting model's answer is not finite.")
    if matte.min() < 0 or matte.max() > 1:  # before the last step of the network
        matte = np.float32(1) / (np.float32(1) + np.exp(-np.clip(matte, -40, 40)))
    scaled = Image.fromarray(matte).resize((width, height), Image.Resampling.BILINEAR)
    opacities: NDArray[np.uint8] = np.rint(np.asarray(scaled) * 255).astype(np.uint8)
    return opacities


def _pinned(model: Matting) -> bytes:
    """The file's bytes, only if they are those that the operator pinned: it is code of a kind."""
    try:
        data = Path(model.path).read_bytes()
    except OSError as error:
        raise _unavailable("The matting model's file cannot be read.") from error
    if hashlib.sha256(data).hexdigest() != model.sha256.lower():
        raise _unavailable("The matting model's file does not have the pinned SHA-256.")
    return data


def _session(data: bytes) -> Any:
    try:
        onnxruntime = import_module("onnxruntime")  # no extra of ours: the operator brings it
    except ImportError as error:
        raise _unavailable("onnxruntime, which runs the matting model, is not installed.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # sums in one order: the same bytes
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unavailable("The matting model cannot be loaded.") from error


def _side(session: Any) -> int:
    wanted = session.get_inputs()[0].shape[-1]
    if not isinstance(wanted, int):  # a name: any size will do
        return _SIDE
    if not 1 <= wanted <= _SIDE_MAX:
        raise _unavailable(f"The matting model wants {wanted} pixels a side; the limit is {_SIDE_MAX}.")
    return wanted


def _input(pixels: NDArray[np.uint8], side: int, model: Matting) -> NDArray[np.float32]:
    picture = Image.fromarray(pixels).convert("RGB").resize((side, side), Image.Resampling.BILINEAR)
    mean, std = np.asarray(model.mean, np.float32), np.asarray(model.std, np.float32)
    colors = (np.asarray(picture, np.float32) / np.float32(255) - mean) / std
    return np.ascontiguousarray(colors.transpose(2, 0, 1)[None], np.float32)


def _unavailable(message: str) -> TempaError:
    hint = "Send a picture with transparency or before a plain background, or tell the operator."
    return TempaError("MASK_PROVIDER_UNAVAILABLE", message, hint=hint)
