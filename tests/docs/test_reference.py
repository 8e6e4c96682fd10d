"""The reference pages say what the code's tables say, and every route and command has its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reference
from tests.unit.api.conftest import World

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.parametrize("page", sorted(reference.PAGES))
def test_a_page_is_what_its_table_makes(page: str) -> None:
    made = reference.MADE + reference.PAGES[page]()
    assert (DOCS / "reference" / page).read_text(encoding="utf-8") == made, "run: python tools/reference.py"


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
