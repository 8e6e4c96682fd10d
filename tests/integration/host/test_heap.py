from __future__ import annotations

import subprocess
import sys

# In a process of its own: its heap is known, and nobody else's is changed.
PROGRAM = """
import hashlib, re
from pathlib import Path
from tempa.engines.host import heap

def huge_kib():
    areas = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text())
    (own,) = [area for area in areas if "[heap]" in area]
    return int(re.search(r"AnonHugePages: +(\\d+)", own)[1])

areas = [bytes([number % 251]) * 100_000 for number in range(400)]
before, joined, after = huge_kib(), heap.join_pages(), huge_kib()
intact = all(area == bytes([number % 251]) * 100_000 for number, area in enumerate(areas))
print(before, joined, after, intact)
"""


def test_the_heap_lies_in_huge_pages_and_is_what_it_was() -> None:
    told = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    before_kib, joined_bytes, after_kib, intact = told.stdout.split()
    assert intact == "True"
    assert int(joined_bytes) == 1024 * int(after_kib)
    # 40 MB and what else lies there; 0 where the kernel cannot.
    assert int(joined_bytes) == 0 or 32 << 20 <= int(joined_bytes) - 1024 * int(before_kib) <= 64 << 20
