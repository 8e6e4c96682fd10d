from __future__ import annotations

import os
from contextlib import closing

import pytest

from tempa.engines.host.memory import Memory

MIB = 1024 * 1024


def test_memory_that_is_touched_is_seen() -> None:
    with closing(Memory(os.getpid())) as memory:
        before = memory.read()
        eaten = bytearray(b"x" * (64 * MIB))
        after = memory.read()
        assert before is not None
        assert after is not None
        assert 60 * MIB <= after.rss_bytes - before.rss_bytes <= 140 * MIB
        assert after.size_bytes >= after.rss_bytes
        assert len(eaten) == 64 * MIB


def test_a_process_that_is_not_there_has_no_memory_to_read() -> None:
    with pytest.raises(FileNotFoundError):
        Memory(2**22 + 1)  # above the highest number a process can have
