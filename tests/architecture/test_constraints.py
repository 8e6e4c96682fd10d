"""constraints.txt pins all that pyproject.toml asks for, and says nothing of where it came from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import constraints

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
REQUIREMENTS = [
    *PROJECT["dependencies"],
    *(one for extra in PROJECT["optional-dependencies"].values() for one in extra),
]
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def test_each_line_is_a_name_and_a_version_in_order() -> None:
    assert [pin for pin in PINS if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][a-z0-9.]*", pin)] == []
    assert sorted(PINS, key=lambda pin: pin.partition("==")[0]) == PINS


@pytest.mark.parametrize("wanted", sorted(set(REQUIREMENTS)))
def test_what_the_project_asks_for_is_pinned_to_a_version_it_accepts(wanted: str) -> None:
    requirement = Requirement(wanted)
    versions = dict(pin.split("==") for pin in PINS)

    assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)])


def test_pins_are_read_from_pips_report_without_tempa_itself() -> None:
    report = [
        {
            "metadata": {"name": "Zope.Interface", "version": "7.2"},
            "download_info": {"url": "https://a.example"},
        },
        {"metadata": {"name": "tempa", "version": "0.1.0"}},
        {"metadata": {"name": "attrs", "version": "26.1.0"}},
    ]

    assert constraints.pins(report) == ["attrs==26.1.0", "zope-interface==7.2"]
