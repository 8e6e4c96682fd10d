"""Out of memory on a device: whose fault it is, and what may help. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempa.core.errors import TempaError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the device, held by others. Below it the card was as good as ours alone: our own CUDA context, which no
# counter of torch's shows, is 0.3 to 0.6 GB of it.
_SHARED_MIN = 0.1
COUNT_LEAST = 32_768  # Gaussians: with fewer the model was not trained
_UNIT = 32


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """A device's memory in bytes. `own` is what torch has reserved here, `peak` the most it used of that."""

    total_bytes: int
    free_bytes: int
    own_bytes: int
    peak_bytes: int

    @property
    def others_bytes(self) -> int:
        """Held by other processes, and by what torch does not count of ours."""
        return max(0, self.total_bytes - self.free_bytes - self.own_bytes)


def out_of_memory(memory: DeviceMemory, stage: str, counts: Sequence[int]) -> TempaError:
    """CUDA_OUT_OF_MEMORY: worth another try when others had part of the card, not when it was ours alone."""
    shared = memory.others_bytes >= _SHARED_MIN * memory.total_bytes
    detail: dict[str, Any] = {
        "stage": stage,
        "peak_bytes": memory.peak_bytes,
        "free_bytes": memory.free_bytes,
        "total_bytes": memory.total_bytes,
        "other_bytes": memory.others_bytes,
    }
    fewer = _fewer(stage, counts)
    if fewer is not None:
        detail["suggest"] = {"num_gaussians": fewer}
    return TempaError(
        "CUDA_OUT_OF_MEMORY",
        _message(memory, shared=shared),
        retryable=shared,
        hint=_hint(fewer),
        detail=detail,
    )


def _fewer(stage: str, counts: Sequence[int]) -> int | None:
    """Half of the most asked for, if the number of Gaussians is what took the memory."""
    most = max(counts)
    if stage != "decoding" or most <= COUNT_LEAST:
        return None
    return max(COUNT_LEAST, most // 2 // _UNIT * _UNIT)


def _message(memory: DeviceMemory, *, shared: bool) -> str:
    total = f"{memory.total_bytes / 2**30:.1f} GiB"
    if shared:
        held = f"{memory.others_bytes / 2**30:.1f} GiB"
        return f"The GPU ran out of memory; other programs held {held} of its {total}."
    return f"The request needs more memory than the GPU has ({total})."


def _hint(fewer: int | None) -> str | None:
    return None if fewer is None else f"Ask for fewer Gaussians: num_gaussians {fewer}."
