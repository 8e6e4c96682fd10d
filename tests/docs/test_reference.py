"""The reference pages say what the code's tables say, and every route and command has its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import reference
from tempa.cli.main import app
from tests.unit.api.conftest import World

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("page", sorted(reference.PAGES))
def test_a_page_is_what_its_table_makes(page: str) -> None:
    made = reference.MADE + reference.PAGES[page]()
    assert (DOCS / "reference" / page).read_text(encoding="utf-8") == made, "run: python tools/reference.py"


def test_every_command_and_option_has_its_place_and_its_default() -> None:
    """Read from the page and from the help that a person would see, not from the code that wrote it."""
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    sections = {section.partition("\n")[0]: section for section in page.split("\n## ")[1:]}

    assert set(sections) >= {"tempa up", "tempa run cad", "tempa jobs wait", "tempa keys create"}
    for name, section in sections.items():
        shown = CliRunner().invoke(app, [*name.split()[1:], "--help"], env={"COLUMNS": "200"}).stdout
        options = set(re.findall(r"^│ [* ]*(--[a-z][a-z-]+)", shown, flags=re.MULTILINE)) - {"--help"}
        assert options <= set(re.findall(r"--[a-z][a-z-]+", section)), name
        for default in re.findall(r"[\[(]default: ([^\])]+)[\])]", " ".join(shown.split())):
            assert default in section, name


def test_every_exit_code_is_explained() -> None:
    """The codes of CONTRACTS section 1, and that of an interrupt."""
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\d+)` \| \S.*\|$", page, flags=re.MULTILINE)

    assert rows == ["0", "1", "2", "3", "4", "5", "6", "130"]


def test_no_page_links_to_nowhere() -> None:
    root = DOCS.parent
    for page in [*root.glob("*.md"), *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(root)} links to {target}"


def test_every_route_stands_on_the_map(tmp_path: Path) -> None:
    paths = World(tmp_path).app.openapi()["paths"]
    page = (DOCS / "reference" / "http.md").read_text(encoding="utf-8")
    missing = [
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method in methods
        if method != "parameters" and f"`{method.upper()} {path}`" not in page
    ]
    assert missing == []
