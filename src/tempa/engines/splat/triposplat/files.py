"""The files that TripoSplat needs, and what their SHA-256 must be.

The weights' published hashes are those of the model card of a byte-identical mirror; two networks are from
others, and nobody publishes theirs: an operator pins them (`tempa engine install` computes the pins).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CODE: Mapping[str, str] = {
    "model.py": "e8cb5aaa95c5cb4907b37621c3f8148965131b7703ed52178edffdeabdf5b623",
    "triposplat.py": "745e9cfa520d1c19e770479c109eaeec92003d3036f94d8dc86ca8e1c914aca6",
}
"""Of the upstream release's two files, below the checkout: those that were read and run for this adapter."""

DINO = "clip_vision/dino_v3_vit_h.safetensors"
VAE = "vae/flux2-vae.safetensors"
FLOW = "diffusion_models/triposplat_fp16.safetensors"
DECODER = "vae/triposplat_vae_decoder_fp16.safetensors"
BACKGROUND = "background_removal/birefnet.safetensors"

WEIGHTS: Mapping[str, str | None] = {
    DINO: None,
    VAE: None,
    FLOW: "c870b97ac1d6bc9177608a5ec625e19ef9f3c5019aa68f64b0fb7803abcd6d20",
    DECODER: "ed0d0c3d43b599e326845d0ec70f3cf77be9a55e2d97627ac3b34d2830763cc8",
    BACKGROUND: "9ab37426bf4de0567af6b5d21b16151357149139362e6e8992021b8ce356a154",
}
"""Below the weights' folder. None: to be pinned by the operator."""

OPTIONAL = frozenset({BACKGROUND})
"""Without it, pictures need transparency or a plain background."""
