"""How far a child may go: the limits that are watched, and the kernel's own as backstops."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tempa.jobs.ports import RunLimits

# One artifact is some hundred MB at most; a runaway writer must not fill the disk.
FILE_BYTES_MAX = 4 * 1024**3
# Reserved but unused: malloc arenas (64 MiB a thread) and the stacks of a kernel's threads.
_ADDRESS_SPACE_SLACK_BYTES = 1024**3
# The watch fires on time; the CPU clock is for a host that cannot.
_CPU_SLACK_SECONDS = 5
_NEAR = 0.95
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Bounds:
    """`timeout_seconds` and `memory_bytes` are watched by the host; the rest are rlimits of the child."""

    timeout_seconds: float
    memory_bytes: int
    address_space_bytes: int
    cpu_seconds: int
    file_bytes: int = FILE_BYTES_MAX

    @classmethod
    def of(cls, limits: RunLimits, zygote_size_bytes: int, cpu_count: int) -> Bounds:
        """The bounds of an attempt whose zygote has an address space of `zygote_size_bytes`.

        RLIMIT_AS cannot be the memory limit itself: address space is not memory (a loaded kernel has
        530 MB of it), and at the limit OCCT mostly dies of SIGSEGV instead of reporting. It stops
        what grows faster than the watch looks. RLIMIT_CPU counts all threads, so it allows as many
        seconds a second as there are CPUs.
        """
        return cls(
            timeout_seconds=limits.timeout_seconds,
            memory_bytes=limits.memory_bytes,
            address_space_bytes=zygote_size_bytes + 2 * limits.memory_bytes + _ADDRESS_SPACE_SLACK_BYTES,
            cpu_seconds=math.ceil(limits.timeout_seconds * cpu_count) + _CPU_SLACK_SECONDS,
        )

    @classmethod
    def watched(cls, limits: RunLimits) -> Bounds:
        """The bounds of an attempt in a resident process: what the host watches, and no limit but files'.

        Its CPU clock runs on from attempt to attempt, and CUDA reserves more address space than there is
        memory in any machine.
        """
        return cls(limits.timeout_seconds, limits.memory_bytes, _UNLIMITED, _UNLIMITED)

    def exhausted(self, peak_rss_bytes: int, peak_size_bytes: int) -> bool:
        """Whether a process that reached these peaks had run into its memory bounds."""
        return peak_rss_bytes > self.memory_bytes or peak_size_bytes >= _NEAR * self.address_space_bytes
