"""A stand-in for TripoSplat: a checkout of our own with the same calls, and the few words of torch it needs.

Nothing of the model is in it, and no torch: it draws a coloured ball, at once. What it keeps to is the
protocol: what must be called in which order, on which device and with which types of numbers, what draws from
which source of random numbers, and who holds how much of the device's memory. It breaks as the real one does.

    fake = write(folder, device="cuda", total_bytes=16 << 30)
    settings: engines.triposplat.python = fake.python, engines.triposplat.options = fake.options
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
import shutil
import stat
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HERE = Path(__file__).parent
VARIABLE = "FAKE_TRIPOSPLAT"

WEIGHTS: Mapping[str, int] = {
    "clip_vision/dino_v3_vit_h.safetensors": 840,
    "vae/flux2-vae.safetensors": 34,
    "diffusion_models/triposplat_fp16.safetensors": 371,
    "vae/triposplat_vae_decoder_fp16.safetensors": 288,
    "background_removal/birefnet.safetensors": 220,
}
"""Files and their parameters: as many as the real ones have millions."""


@dataclass(frozen=True, slots=True)
class FakeTripoSplat:
    """One that was written. `options` and `python` are what the settings want."""

    folder: Path
    python: str
    options: Mapping[str, Any]

    def provoke(self, **faults: Any) -> None:
        """Say what the machine is like and what goes wrong, in place of all that was said before.

        `cuda`: whether there is such a device (by default if it is what the options name); `total_bytes`,
        `other_bytes`: of it, and what others hold; `gaussian_bytes`: what a decode takes for each;
        `torch_error`: what importing torchvision raises; `pipe`: step n of the sampler, from 0, waits for the
        named pipe of this name followed by n; `host_memory`: a stage that lacks the host's; `crash`: a stage
        that dies of a signal; `latent`: "nan"; `lost`: share of Gaussians that are no numbers; `clear`: share
        that nobody can see; `share`: of the Gaussians asked for that are made; `flat`: all in one point.
        """
        machine = {"cuda": self.options["device"] != "cpu"}
        (self.folder / "faults.json").write_text(json.dumps(machine | faults), encoding="utf-8")

    def forget(self) -> None:
        """Begin the record of calls anew."""
        (self.folder / "calls.jsonl").write_text("", encoding="utf-8")

    def calls(self) -> list[dict[str, Any]]:
        """What was called since then: `call`, and which networks were `alive` then."""
        text = (self.folder / "calls.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


def write(
    folder: Path, *, device: str = "cpu", keep: str = "auto", python: str = sys.executable, **faults: Any
) -> FakeTripoSplat:
    """Write a checkout, its weights and its interpreter into `folder`. Faults as of `provoke`."""
    checkout = folder / "checkout"
    checkout.mkdir(parents=True)
    for name in ("model.py", "triposplat.py"):
        shutil.copyfile(HERE / "checkout" / name, checkout / name)
    for name, parameters in WEIGHTS.items():
        (path := checkout / "ckpts" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(safetensors({"weight": (parameters,)}))
    options = {"checkout": str(checkout), "device": device, "keep": keep, "pins": pins(checkout)}
    fake = FakeTripoSplat(folder, str(_interpreter(folder, python)), options)
    (folder / "calls.jsonl").touch()
    fake.provoke(**faults)
    return fake


def pins(checkout: Path) -> dict[str, str]:
    """SHA-256 of every file of a checkout, as the settings want them."""
    files = {name: checkout / name for name in ("model.py", "triposplat.py")}
    files |= {name: checkout / "ckpts" / name for name in WEIGHTS}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}


def safetensors(shapes: Mapping[str, Sequence[int]]) -> bytes:
    """A weight file of zeros, in halves."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 2 * math.prod(shape)
        entries[name] = {"dtype": "F16", "shape": list(shape), "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + bytes(end)


def _interpreter(folder: Path, python: str) -> Path:
    """A program that is `python` with the stand-in's torch before everything else."""
    site = shlex.quote(str(HERE / "site"))
    lines = (
        "#!/bin/sh",
        f"export {VARIABLE}={shlex.quote(str(folder))}",
        f'export PYTHONPATH={site}"${{PYTHONPATH:+:$PYTHONPATH}}"',
        f'exec {shlex.quote(python)} "$@"',
    )
    path = folder / "python"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
