"""Decision pages: numbered without gaps, dated, with a known status, and listed with that status."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs/decisions"
PAGES = sorted(FOLDER.glob("[0-9]*.md"))
STATUS = re.compile(r"accepted|rejected|superseded by \d{4}")


def field(page: Path, name: str) -> str:
    found = re.search(rf"^- {name}: (.+)$", page.read_text(), flags=re.MULTILINE)
    return found[1] if found else ""


def test_numbers_have_no_gaps() -> None:
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_a_page_says_what_when_why_and_what_follows(page: Path) -> None:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)

    assert headings[0].startswith(f"{page.name[:4]}: ")
    assert headings[1:] == ["Context", "Decision", "Consequences"]
    assert STATUS.fullmatch(field(page, "Status"))
    assert field(page, "Date") == str(date.fromisoformat(field(page, "Date")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_the_list_knows_the_page_and_its_status(page: Path) -> None:
    title = page.read_text().splitlines()[0].removeprefix(f"# {page.name[:4]}: ")
    row = f"| [{page.name[:4]}]({page.name}) | {title} | {field(page, 'Status')} |"

    assert row in (FOLDER / "README.md").read_text().splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:4])
def test_what_supersedes_a_page_exists(page: Path) -> None:
    later = re.search(r"superseded by (\d{4})", field(page, "Status"))

    assert later is None or list(FOLDER.glob(f"{later[1]}-*.md"))
