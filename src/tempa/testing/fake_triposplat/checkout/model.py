"""The networks of the stand-in: what they take of the device, and what comes out of them."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]  # the stand-in's
from PIL import Image

_PARAMETERS = 1_000_000  # for each one that a file says it has
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
_GAUSSIAN_BYTES = 4096
_LATENT = (1, 64, 16)


class Network:
    """On its device from when it is loaded until nobody holds it any more."""

    kind = "network"
    half = "float16"

    def __init__(self, path: str, device: str, dtype: str) -> None:
        torch.require(device)
        assert dtype == ("float32" if device == "cpu" else self.half), f"{self.kind} as {dtype} on {device}"
        self.device = device
        if device != "cpu":
            torch.card.take(self.kind, _parameters(path) * _PARAMETERS * _BYTES[dtype])
        alive.append(self.kind)
        tell(f"load {self.kind}")

    def __del__(self) -> None:
        torch.card.give_back(self.kind)
        if self.kind in alive:
            alive.remove(self.kind)


alive: list[str] = []


def tell(call: str) -> None:
    """Put a call on record, and break if this is the stage that breaks."""
    with (torch.FOLDER / "calls.jsonl").open("a", encoding="utf-8") as record:
        record.write(json.dumps({"call": call, "alive": sorted(alive)}) + "\n")
    if torch.fault("host_memory") == call:
        raise MemoryError
    if torch.fault("crash") == call:
        os.kill(os.getpid(), signal.SIGSEGV)


def _parameters(path: str) -> int:
    with Path(path).open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return int(header["weight"]["shape"][0])


class DinoV3ViT(Network):
    """Sees colours: the mean of the picture's lit pixels."""

    kind = "dinov3"
    half = "bfloat16"

    def see(self, pixels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Three numbers from 0 to 1."""
        lit = pixels[pixels.any(axis=2)]
        return np.asarray(lit.mean(axis=0) / 255.0 if len(lit) else np.zeros(3))


class Flux2VAEEncoder(Network):
    """Sees size: the share of lit pixels, and the generator's noise."""

    kind = "vae"
    half = "bfloat16"

    def encode(self, pixels: np.ndarray[Any, Any], generator: Any) -> np.ndarray[Any, Any]:
        """The share, and one random number."""
        return np.array([pixels.any(axis=2).mean(), generator.source.random()])


class BiRefNet(Network):
    """Takes the middle for the object."""

    kind = "background"

    def remove_background(self, image: Image.Image) -> Image.Image:
        """An ellipse that fills three quarters of the picture each way."""
        assert image.mode == "RGB"
        tell("matte")
        width, height = image.size
        y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
        cut = image.copy()
        cut.putalpha(Image.fromarray(np.where(np.hypot(x, y) < 0.75, 255, 0).astype(np.uint8)))
        return cut


class LatentSeqMMFlowModel(Network):
    """A straight flow from the noise to what the encoders saw."""

    kind = "flow"
    q_token_length, in_channels, cam_channels = _LATENT[1], _LATENT[2], 5

    def __call__(self, x: dict[str, Any], t: Any, cond: dict[str, Any]) -> dict[str, Any]:
        assert set(x) == {"latent", "camera"}
        assert 0 < float(t[0]) <= 1000, "time is counted in thousandths"
        aim = np.zeros(_LATENT, np.float32)
        aim[0, :, :5] = cond["feature"]
        if torch.fault("latent") == "nan":
            aim[0, 0, 0] = np.nan
        share = 1000.0 / float(t[0])
        return {name: torch.Tensor((x[name].values - (aim if name == "latent" else 0)) * share) for name in x}


class OctreeGaussianDecoder(Network):
    """A ball, in the colour and the size that were seen."""

    kind = "decoder"
    gaussians_per_point = 32

    def decode(self, latent: Any, num_gaussians: int) -> Any:
        """As many Gaussians as asked for, at places from the global source."""
        from triposplat import _build_gaussians  # type: ignore[import-not-found, unused-ignore]  # in the middle

        assert num_gaussians % self.gaussians_per_point == 0, "an odd number of Gaussians"
        assert latent.shape == _LATENT
        tell("decode")
        if self.device != "cpu":
            torch.card.take("decode", num_gaussians * int(torch.fault("gaussian_bytes", _GAUSSIAN_BYTES)))
        try:
            count = round(num_gaussians * float(torch.fault("share", 1.0)))
            return _build_gaussians(latent.values[0].mean(axis=0), torch.rand(count, 3).values)
        finally:
            torch.card.give_back("decode")
