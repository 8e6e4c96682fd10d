"""A real model of three nodes in the real run time, where an operator has that."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tempa.core.errors import TempaError
from tempa.engines.splat.image.matting import Matting, alpha

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.allowed_skip(reason="onnxruntime is the operator's: 27 MB that no engine needs")

_VARINT, _BYTES = 0, 2
_FLOAT, _OPSET, _IR = 1, 13, 8


def number(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def field(at: int, value: int | str | bytes) -> bytes:
    """A field of a protocol buffer; the numbers below are those of onnx.proto."""
    if isinstance(value, int):
        return number(at << 3 | _VARINT) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(at << 3 | _BYTES) + number(len(data)) + data


def tensor(name: str, *sizes: int) -> bytes:
    dimensions = b"".join(field(1, field(1, size)) for size in sizes)
    kind = field(1, field(1, _FLOAT) + field(2, dimensions))
    return field(1, name) + field(2, kind)


def node(kind: str, given: str, made: str, attribute: bytes = b"") -> bytes:
    return field(1, given) + field(2, made) + field(4, kind) + attribute


def brightness_model(side: int) -> bytes:
    """1 where a pixel is brighter than the mean of the range, 0 elsewhere."""
    axes = field(5, field(1, "axes") + field(8, 1) + field(20, 7))
    nodes = [
        node("ReduceMean", "picture", "mean", axes),
        node("Sign", "mean", "sign"),
        node("Relu", "sign", "matte"),
    ]
    graph = b"".join(field(1, one) for one in nodes) + field(2, "matting")
    graph += field(11, tensor("picture", 1, 3, side, side)) + field(12, tensor("matte", 1, 1, side, side))
    return field(1, _IR) + field(7, graph) + field(8, field(1, "") + field(2, _OPSET))


def test_a_real_model_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    data = brightness_model(64)
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    pixels = np.full((128, 192, 4), 20, np.uint8)
    pixels[:, 96:] = 230
    matte = alpha(pixels, Matting(str(path), hashlib.sha256(data).hexdigest()))
    assert matte.shape == (128, 192)
    assert (matte[:, :90].max(), matte[:, 102:].min()) == (0, 255)


def test_what_is_no_model_is_not_available(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(TempaError) as caught:
        alpha(np.zeros((64, 64, 4), np.uint8), Matting(str(path), hashlib.sha256(b"no model").hexdigest()))
    assert caught.value.code == "MASK_PROVIDER_UNAVAILABLE"
