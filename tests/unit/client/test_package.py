"""`import tempa` gives the client to who asks for it, and costs nothing to who does not."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tempa
import tempa.client

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["Client", "AsyncClient", "JobFailed"])
def test_the_client_is_at_hand(name: str) -> None:
    assert getattr(tempa, name) is getattr(tempa.client, name)
    assert name in dir(tempa)


@pytest.mark.parametrize("name", ["nothing", "_client"])
def test_what_is_not_there_is_not_there(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'tempa' has no attribute '{name}'"):
        getattr(tempa, name)


def test_importing_the_package_loads_no_client() -> None:
    """Every process of the house imports it, the children that kernels run in among them."""
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, tempa; print('httpx2' in sys.modules, 'pydantic' in sys.modules)",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert process.stdout == "False False\n"


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert tempa.__version__ == project["version"]


def test_types_come_along() -> None:
    assert (ROOT / "src/tempa/py.typed").exists()
