"""The words of torch that the adapter and the stand-in's checkout use, in NumPy.

The device's memory is a ledger: what networks and decodes take is counted, and too much is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

__version__ = "0.0+stand-in"

FOLDER = Path(os.environ["FAKE_TRIPOSPLAT"])
float32, float16, bfloat16 = "float32", "float16", "bfloat16"
_GIB = 1 << 30


class OutOfMemoryError(RuntimeError):
    """As torch's: a kind of RuntimeError."""


def fault(name: str, default: Any = None) -> Any:
    """What a test has provoked; looked up at each call, so that it may change between two jobs."""
    return json.loads((FOLDER / "faults.json").read_text(encoding="utf-8")).get(name, default)


@dataclass
class _Card:
    """A device's memory in bytes."""

    held: dict[str, int] = field(default_factory=dict)
    peak: int = 0

    @property
    def total(self) -> int:
        return int(fault("total_bytes", 80 * _GIB))

    @property
    def own(self) -> int:
        return sum(self.held.values())

    @property
    def free(self) -> int:
        return max(0, self.total - int(fault("other_bytes", 0)) - self.own)

    def take(self, owner: str, size_bytes: int) -> None:
        if size_bytes > self.free:
            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size_bytes} bytes.")
        self.held[owner] = size_bytes
        self.peak = max(self.peak, self.own)

    def give_back(self, owner: str) -> None:
        self.held.pop(owner, None)


card = _Card()


class _Cuda:
    """torch.cuda."""

    OutOfMemoryError = OutOfMemoryError

    def is_available(self) -> bool:
        return bool(fault("cuda"))

    def mem_get_info(self, device: str) -> tuple[int, int]:
        require(device)
        return card.free, card.total

    def memory_reserved(self, _device: str) -> int:
        return card.own

    def max_memory_allocated(self, _device: str) -> int:
        return card.peak

    def reset_peak_memory_stats(self, _device: str) -> None:
        card.peak = card.own

    def empty_cache(self) -> None:
        """Nothing is cached."""


cuda = _Cuda()


class Tensor:
    """An array with torch's ways of getting at it."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def detach(self) -> Tensor:
        return self

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32))

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return self.values

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __sub__(self, other: Tensor) -> Tensor:
        return Tensor(self.values - other.values)

    def __mul__(self, factor: Any) -> Tensor:
        return Tensor(self.values * factor)


class Generator:
    """A source of random numbers on a device."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.source = np.random.default_rng()

    def manual_seed(self, seed: int) -> Self:
        self.source = np.random.default_rng(seed)
        return self


_global = Generator()


def manual_seed(seed: int) -> Generator:
    """Of the source that everybody draws from; nobody knows where it stands before."""
    return _global.manual_seed(seed)


def rand(*shape: int) -> Tensor:
    """From the global source."""
    return Tensor(_global.source.random(shape, np.float32))


def zeros(*shape: int, device: str) -> Tensor:
    """As torch's, it fails on a device that is not there."""
    require(device)
    return Tensor(np.zeros(shape, np.float32))


def require(device: str) -> None:
    """Refuse a device that is not there, in torch's words."""
    if device != "cpu" and not cuda.is_available():
        raise RuntimeError("Found no NVIDIA driver on your system.")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 - torch's own
    """Everything here is."""
