from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

from tempa.engines.host.output import TAIL_BYTES, Output

MIB = 1024 * 1024


def test_the_tail_is_the_end_of_what_was_printed(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        os.write(output.fileno(), b"first\n" + b"x" * TAIL_BYTES + b"\nlast\n")
        assert output.tail().endswith("x\nlast")
        assert len(output.tail()) <= TAIL_BYTES
        assert "first" not in output.tail()


def test_the_tail_is_plain_text(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        os.write(output.fileno(), b"\x1b[1;31merror\x1b[0m\r\n\tat \xff\x00\x07face 3\x1b[K\n")
        assert output.tail() == "error\n\tat \ufffdface 3"


def test_trimming_gives_the_disk_back_and_keeps_the_tail(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        for _ in range(3):
            os.write(output.fileno(), b"x" * 2 * MIB + b"before")
            assert disk_bytes(output) > MIB
            output.trim()
            assert disk_bytes(output) <= 4 * TAIL_BYTES
            os.write(output.fileno(), b" after")
            assert output.tail() == "x" * (TAIL_BYTES - 12) + "before after"


def test_little_output_is_not_trimmed(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        os.write(output.fileno(), b"first" + b"x" * (MIB // 2))
        output.trim()
        assert os.pread(output.fileno(), 5, 0) == b"first"


def test_the_file_has_no_name(tmp_path: Path) -> None:
    with closing(Output(tmp_path)) as output:
        os.write(output.fileno(), b"text")
        assert list(tmp_path.iterdir()) == []


def disk_bytes(output: Output) -> int:
    return os.fstat(output.fileno()).st_blocks * 512
