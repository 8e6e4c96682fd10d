"""The table of formats: light to import, complete, and told in the documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tempa.engines.splat.formats.table import FORMATS

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/reference/splat-formats.md").read_text()


def test_knowing_the_formats_loads_no_kernel() -> None:
    script = (
        "import sys, tempa.engines.splat.formats.table; print({'numpy', 'PIL', 'numba'} & {*sys.modules})"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ended.stdout == "set()\n"


def test_names_are_those_of_the_table() -> None:
    assert all(name == form.name for name, form in FORMATS.items())
    assert len({form.file_name for form in FORMATS.values()}) == len(FORMATS)
    assert FORMATS["ply"].role == "gaussian_ply"
    assert FORMATS["spz"].role == "spz"


def test_only_ply_and_glb_keep_every_value() -> None:
    assert {name for name, form in FORMATS.items() if not form.lossy} == {"ply", "glb"}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_told_as_it_is(name: str) -> None:
    form = FORMATS[name]
    row = re.findall(rf"^\| `{name}` \|.*$", PAGE, re.MULTILINE)[0]
    cells = [cell.strip() for cell in row.strip("|").split("|")]

    assert f"`{form.file_name}`" in cells
    assert form.axes in cells
    assert f"0 to {form.degree_max}" in cells or (form.degree_max == 0 and "0" in cells)
    assert f"{form.size_bytes:g}" in cells
