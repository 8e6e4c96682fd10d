"""The stages of the stand-in, under the names and with the arguments that the real checkout has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found, unused-ignore]  # the stand-in's
import torchvision  # type: ignore[import-not-found, unused-ignore]  # noqa: F401 - as the real one does
from model import (  # type: ignore[import-not-found, unused-ignore]  # by its name at the top, as the real one
    BiRefNet,
    DinoV3ViT,
    Flux2VAEEncoder,
    LatentSeqMMFlowModel,
    OctreeGaussianDecoder,
    tell,
)

_CANVAS_SIZE = 128
_UNIT = 1000.0


class Gaussian:
    """As the real one, it is made on CUDA unless told otherwise. The model's frame has z up."""

    def __init__(self, aabb: list[float], device: str = "cuda") -> None:
        torch.require(device)
        self.aabb = aabb
        self.rots_bias = torch.Tensor([1.0, 0.0, 0.0, 0.0])
        self._rotation: Any = None
        self._features_dc: Any = None
        self.get_xyz: Any = None
        self.get_scaling: Any = None
        self.get_opacity: Any = None


def _build_gaussians(seen: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> Gaussian:
    """A ball whose upper part, z > 0 in the model's frame, is lit more than the lower."""
    gaussian = Gaussian(aabb=[-0.5, -0.5, -0.5, 1.0, 1.0, 1.0])
    count = len(places)
    height, angle = 2.0 * places[:, 0] - 1.0, 2.0 * np.pi * places[:, 1]
    ring = np.sqrt(1.0 - height**2)
    radius = 0.0 if torch.fault("flat") else 0.2 + 0.2 * min(1.0, float(seen[3]))
    xyz = radius * np.stack((ring * np.cos(angle), ring * np.sin(angle), height), axis=1)
    xyz[: round(count * float(torch.fault("lost", 0.0)))] = np.nan
    color = (seen[:3] + 0.2 * height[:, None] - 0.5) / 0.28209479177387814
    opacity = np.full((count, 1), 0.9)
    opacity[: round(count * float(torch.fault("clear", 0.0)))] = 1e-4
    gaussian.get_xyz = torch.Tensor(xyz.astype(np.float32))
    gaussian.get_scaling = torch.Tensor(np.full((count, 3), 1.5 / np.sqrt(count) * 0.4, np.float32))
    gaussian.get_opacity = torch.Tensor(opacity.astype(np.float32))
    gaussian._rotation = torch.Tensor(np.zeros((count, 4), np.float32))  # noqa: SLF001 - as the real one
    gaussian._features_dc = torch.Tensor(color[:, None, :].astype(np.float32))  # noqa: SLF001
    return gaussian


def load_dinov3(path: str, device: Any = None, dtype: Any = None) -> DinoV3ViT:
    """The first encoder."""
    return DinoV3ViT(path, device, dtype)


def load_vae_encoder(path: str, device: Any = None, dtype: Any = None) -> Flux2VAEEncoder:
    """The second encoder."""
    return Flux2VAEEncoder(path, device, dtype)


def load_rmbg(path: str, device: Any = None, dtype: Any = None) -> BiRefNet:
    """The background's removal."""
    return BiRefNet(path, device, dtype)


def load_flow_model(path: str, device: Any = None, dtype: Any = None) -> LatentSeqMMFlowModel:
    """The denoiser."""
    return LatentSeqMMFlowModel(path, device, dtype)


def load_decoder(path: str, device: Any = None, dtype: Any = None) -> OctreeGaussianDecoder:
    """The decoder."""
    return OctreeGaussianDecoder(path, device, dtype)


def encode_image(image: Any, dinov3: Any, vae_encoder: Any, generator: Any = None) -> dict[str, Any]:
    """What both encoders see of a prepared picture: RGB, square, on black."""
    assert image.mode == "RGB"
    assert image.size == (_CANVAS_SIZE, _CANVAS_SIZE)
    assert generator is not None, "the generator is the seed's"
    tell("encode")
    pixels = np.asarray(image)
    return {"feature": np.concatenate((dinov3.see(pixels), vae_encoder.encode(pixels, generator)))}


def sample_latent(
    flow_model: Any,
    cond: dict[str, Any],
    steps: int = 50,
    guidance_scale: float = 7.0,
    shift: float = 3.0,
    generator: Any = None,
    show_progress: bool = False,  # noqa: FBT001, FBT002 - the real one's signature
    callback: Any = None,
) -> dict[str, Any]:
    """Euler steps from noise; the network is called twice a step when the guidance is more than 1."""
    assert not show_progress
    assert generator.device == flow_model.device, "the generator is on another device"
    shape = (1, flow_model.q_token_length, flow_model.in_channels)
    x = {
        "latent": torch.Tensor(generator.source.standard_normal(shape, np.float32)),
        "camera": torch.Tensor(generator.source.standard_normal((1, 1, flow_model.cam_channels), np.float32)),
    }
    times = np.linspace(1.0, 0.0, steps + 1)
    times = shift * times / (1.0 + (shift - 1.0) * times)
    for step in range(steps):
        tell("step")
        if torch.fault("pipe"):
            Path(f"{torch.fault('pipe')}{step}").read_bytes()
        now = torch.Tensor([_UNIT * times[step]])
        velocity = flow_model(x, now, cond)
        if guidance_scale > 1:
            flow_model(x, now, {"feature": np.zeros(5)})
        x = {name: x[name] - velocity[name] * (times[step] - times[step + 1]) for name in x}
        if callback is not None:
            callback(step + 1, steps)
    return x
