"""All that the adapter has to do with torch; a child process imports it, and nothing of the server does."""

from __future__ import annotations

import gc
import importlib
import os
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tempa.core.errors import TempaError
from tempa.engines.splat.triposplat.shortage import DeviceMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

# cuBLAS sums in one order only with workspaces of a fixed size; it reads this when it is loaded.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# Its threads spin while they wait for one another. On a machine with other work that took 6 to 8 s where a
# sleeping wait took 1.6 (the tiny model, 2 cores, load 4). Read when torch is loaded, too.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_HALF_ON_CPU = "float32"  # halves are emulated there, and slower
_CPU_ALLOCATOR = "DefaultCPUAllocator"  # in the message of a RuntimeError: it has no class of its own


class Torch:
    """One device, as `torch.device` names it."""

    def __init__(self, device: str) -> None:
        try:
            self._torch: Any = importlib.import_module("torch")
        except Exception as error:
            raise TempaError(
                "MODEL_NOT_INSTALLED", "torch cannot be imported.", detail={"kernel": str(error)[:500]}
            ) from error
        self.device = device
        self._on_cpu = device == "cpu"
        self._torch.use_deterministic_algorithms(True, warn_only=True)  # some kernels have no other form

    @property
    def version(self) -> str:
        """Of torch."""
        return str(self._torch.__version__)

    def require_device(self) -> None:
        """Before hours of work: whether the device answers.

        Raises:
            TempaError: DEVICE_UNAVAILABLE.
        """
        if self._on_cpu:
            return
        try:
            if self._torch.cuda.is_available():
                self._torch.zeros(1, device=self.device)
                return
            why = "no CUDA device is visible"
        except RuntimeError as error:
            if self.lacking(error):
                raise
            why = str(error)[:500]
        raise TempaError("DEVICE_UNAVAILABLE", detail={"device": self.device, "kernel": why})

    @property
    def answers(self) -> bool:
        """Whether the device does."""
        try:
            self.require_device()
        except TempaError:
            return False
        return True

    def dtype(self, name: str) -> Any:
        """A type of numbers that the device is quick with."""
        return getattr(self._torch, _HALF_ON_CPU if self._on_cpu else name)

    def generator(self, seed: int) -> Any:
        """A source of random numbers of its own, on the device."""
        return self._torch.Generator(device=self.device).manual_seed(seed)

    def seed(self, seed: int) -> None:
        """Set the global source, on every device: the model's decoder draws from it."""
        self._torch.manual_seed(seed)

    def free(self) -> None:
        """Give back what no tensor holds any more."""
        gc.collect()
        if not self._on_cpu:
            self._torch.cuda.empty_cache()

    def forget_peak(self) -> None:
        """Measure the peak from here on."""
        if not self._on_cpu:
            self._torch.cuda.reset_peak_memory_stats(self.device)

    def memory(self) -> DeviceMemory | None:
        """The device's; None for the CPU, whose memory the host watches."""
        if self._on_cpu:
            return None
        cuda = self._torch.cuda
        free_bytes, total_bytes = cuda.mem_get_info(self.device)
        return DeviceMemory(
            total_bytes=int(total_bytes),
            free_bytes=int(free_bytes),
            own_bytes=int(cuda.memory_reserved(self.device)),
            peak_bytes=int(cuda.max_memory_allocated(self.device)),
        )

    def lacking(self, error: BaseException) -> Literal["device", "host"] | None:
        """Whose memory was not enough, if that is what an exception says."""
        if isinstance(error, self._torch.OutOfMemoryError):
            return "device"
        of_torch = isinstance(error, RuntimeError) and _CPU_ALLOCATOR in str(error)
        return "host" if of_torch or isinstance(error, MemoryError) else None


def array(tensor: Any) -> NDArray[np.float32]:
    """A tensor's values, on the host."""
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy(), np.float32)
