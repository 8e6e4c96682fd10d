"""Processes that share a folder of files each have scratch of their own in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tempa.wiring import distributed

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_process_that_starts_leaves_alone_what_another_works_on(tmp_path: Path) -> None:
    async with distributed._artifacts(tmp_path) as first:
        folder = first.scratch("cad_x.a1")
        (folder / "model.step").write_bytes(b"half a sol")

        async with distributed._artifacts(tmp_path) as second:
            assert second.scratch("cad_x.a1") != folder

        assert (folder / "model.step").read_bytes() == b"half a sol"
