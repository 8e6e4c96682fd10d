"""The real model's code with three tiny networks and random weights: for the contract, not for looks.

An operator's two source files get a few lines of ours at their end, which make the networks small. The
weights are made by those files themselves, under the operator's interpreter: `python tiny_checkout.py DIR`.
"""

from __future__ import annotations

import hashlib
import importlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SEED = 20_260_508
# Heads have 64 channels in this code; fewer than two refiner blocks it cannot build. The second encoder and
# the background's removal have one size only: the former is made whole, the latter left out.
SMALLER = """

_CANVAS_SIZE = 64
FLOW_MODEL_ARGS.update(
    q_token_length=128, model_channels=128, num_heads=2, num_blocks=2, num_refiner_blocks=2, cond_channels=64
)
OCTREE_DECODER_ARGS.update(model_channels=128, num_heads=2, num_blocks=1)
GS_DECODER_ARGS.update(model_channels=128, num_heads=2, num_blocks=1)


def make_dinov3():
    return DinoV3ViT(hidden_size=64, num_heads=4, num_layers=2, intermediate_size=128)


def load_dinov3(path, device=None, dtype=None):
    network = make_dinov3()
    network.load_safetensors(path)
    return _place(network, device, dtype)
"""
MAKERS: Mapping[str, str] = {
    "clip_vision/dino_v3_vit_h.safetensors": "make_dinov3()",
    "vae/flux2-vae.safetensors": "Flux2VAEEncoder()",
    "diffusion_models/triposplat_fp16.safetensors": "LatentSeqMMFlowModel(**FLOW_MODEL_ARGS)",
    "vae/triposplat_vae_decoder_fp16.safetensors": (
        "OctreeGaussianDecoder(OCTREE_DECODER_ARGS, GS_DECODER_ARGS)"
    ),
}


def write(folder: Path, source: Path, python: str) -> dict[str, Any]:
    """Write a tiny checkout; returns the engine's options but for the device."""
    folder.mkdir(parents=True)
    model, triposplat = (
        (source / name).read_text(encoding="utf-8") for name in ("model.py", "triposplat.py")
    )
    (folder / "model.py").write_text(model, encoding="utf-8")
    (folder / "triposplat.py").write_text(triposplat + SMALLER, encoding="utf-8")
    subprocess.run([python, __file__, str(folder)], check=True, timeout=120)
    files = {name: folder / name for name in ("model.py", "triposplat.py")}
    files |= {name: folder / "ckpts" / name for name in MAKERS}
    pins = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    return {"checkout": str(folder), "pins": pins}


def _make_weights(folder: Path) -> None:
    """Under the operator's interpreter."""
    sys.path.insert(0, str(folder))
    torch = importlib.import_module("torch")
    save: Any = importlib.import_module("safetensors.torch").save_file
    code = importlib.import_module("triposplat")
    torch.manual_seed(SEED)
    for name, maker in MAKERS.items():
        network = eval(maker, vars(code))  # noqa: S307 - a line of ours, above
        (path := folder / "ckpts" / name).parent.mkdir(parents=True, exist_ok=True)
        save({key: value.contiguous().clone() for key, value in network.state_dict().items()}, str(path))


if __name__ == "__main__":
    _make_weights(Path(sys.argv[1]))
