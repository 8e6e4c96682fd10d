"""The model's networks: loaded when a stage needs them, and let go behind it unless there is room for all."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat import weights
from tempa.engines.splat.triposplat.files import BACKGROUND, DECODER, DINO, FLOW, OPTIONAL, VAE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tempa.engines.splat.triposplat.modules import Checkout
    from tempa.engines.splat.triposplat.options import Options
    from tempa.engines.splat.triposplat.torch_side import Torch

# All five are 3.5 GB; a job at 262,144 Gaussians is said to need some 10 GB with them.
_ROOM_BYTES = 16 * 2**30


@dataclass(frozen=True, slots=True)
class Network:
    """One of the five: the checkout's function that loads it, its file, and its numbers on a GPU."""

    loader: str
    file: str
    dtype: str


NETWORKS: Mapping[str, Network] = {
    "dinov3": Network("load_dinov3", DINO, "bfloat16"),
    "vae": Network("load_vae_encoder", VAE, "bfloat16"),
    "flow": Network("load_flow_model", FLOW, "float16"),
    "decoder": Network("load_decoder", DECODER, "float16"),
    "background": Network("load_rmbg", BACKGROUND, "float16"),
}


class Networks:
    """Loads networks from files whose hashes were checked, each time they are used or once for all.

    Raises:
        TempaError: MODEL_NOT_INSTALLED, MODEL_CHECKSUM_MISMATCH.
    """

    def __init__(self, options: Options, checkout: Checkout, torch: Torch) -> None:
        self._checkout = checkout
        self._torch = torch
        self._folder = options.weights_folder
        self._loaded: dict[str, Any] = {}
        self._files = {
            name: self._verified(network.file, options)
            for name, network in NETWORKS.items()
            if network.file not in OPTIONAL or (self._folder / network.file).exists()
        }
        # Without a device nothing can stay on it; each job will say that it is missing.
        self._kept = torch.answers and (options.keep == "all" or (options.keep == "auto" and self._roomy()))

    @property
    def kept(self) -> bool:
        """Whether networks stay on the device."""
        return self._kept

    @property
    def files(self) -> list[str]:
        """The weight files that are there, and were checked."""
        return [NETWORKS[name].file for name in self._files]

    def has(self, name: str) -> bool:
        """Whether a network's file is there."""
        return name in self._files

    def _verified(self, file: str, options: Options) -> tuple[int, int, int]:
        path = self._folder / file
        weights.look(path, file)
        weights.require(path, file, options.pin(file))
        return _identity(path)

    def _roomy(self) -> bool:
        memory = self._torch.memory()
        return memory is not None and memory.total_bytes >= _ROOM_BYTES

    def load_kept(self) -> None:
        """Load those that stay, but for the background's: most pictures do not need it."""
        if self._kept:
            for name in NETWORKS.keys() - {"background"}:
                self._load(name)

    @contextlib.contextmanager
    def use(self, *names: str) -> Iterator[list[Any]]:
        """Networks on the device, in the order of their names."""
        try:
            yield [self._load(name) for name in names]
        finally:
            if not self._kept:
                self._loaded.clear()
                self._torch.free()

    def _load(self, name: str) -> Any:
        if name not in self._loaded:
            network = NETWORKS[name]
            path = self._folder / network.file
            if _identity(path) != self._files[name]:
                message = f"{network.file} was changed since its hash was checked."
                raise TempaError("MODEL_CHECKSUM_MISMATCH", message, detail={"file": network.file})
            load = getattr(self._checkout.code, network.loader)
            dtype = self._torch.dtype(network.dtype)
            self._loaded[name] = load(str(path), device=self._torch.device, dtype=dtype)
        return self._loaded[name]


def _identity(path: Path) -> tuple[int, int, int]:
    """Another file, or another content, has another."""
    try:
        found = path.stat()
    except OSError as error:
        raise TempaError("MODEL_NOT_INSTALLED", "A weight file went away.") from error
    return found.st_ino, found.st_size, found.st_mtime_ns
