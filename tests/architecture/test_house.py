"""The house's own lints hold over the whole tree; `test_lints.py` shows that each of them can fail."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import house

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/tempa"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

LINES_MAX = 400
PURE_ROOMS = {"core", "jobs", "webhooks", "settlement"}
# Who touches the world reads its clocks.
OWN_CLOCK_ROOMS = {"adapters", "cli", "engines", "testing", "wiring"}
OWN_CLOCK_FILES = {
    "core/clock.py",  # the clock of all others
    "core/ids.py",  # an id carries the time it was made
    "webhooks/verifier.py",  # runs in the receiver's process, where nobody hands it a clock
}
CORE_MAY_IMPORT = {"pydantic", "pydantic_core", "rfc8785", "tempa.core"}
NEVER_IN_THE_API = {"OCP", "alembic", "bpy", "manifold3d", "numba", "sqlalchemy", "torch"}


def sources(*rooms: str) -> list[Path]:
    """Our Python files under `src/tempa`, all of them or those of some rooms."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [file for file in files if not rooms or file.relative_to(PACKAGE).parts[0] in rooms]


def offences(files: Iterable[Path], lint: Callable[[ast.AST], list[house.Finding]]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{finding.line} {finding.what}"
        for file in files
        for finding in lint(ast.parse(file.read_text()))
    ]


def text_offences(lint: Callable[[str], list[house.Finding]]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{finding.line} {finding.what}"
        for file in house.listed_files(ROOT)
        for finding in lint(house.text_of(file) or "")
    ]


def test_only_the_rim_reads_clocks_sleeps_and_rolls_dice() -> None:
    def has_own_clock(file: PurePath) -> bool:
        return file.parts[0] in OWN_CLOCK_ROOMS or str(file) in OWN_CLOCK_FILES

    files = [file for file in sources() if not has_own_clock(file.relative_to(PACKAGE))]

    assert not offences(files, house.clock_words)


def test_sql_lies_in_sql_files() -> None:
    assert not offences(sources(), house.sql_literals)


def test_no_import_hides_in_a_function_of_a_pure_room() -> None:
    assert not offences(sources(*PURE_ROOMS), house.hidden_imports)


def test_core_stands_on_almost_nothing() -> None:
    assert not offences(sources("core"), lambda tree: house.foreign_imports(tree, CORE_MAY_IMPORT))


def test_no_test_sleeps() -> None:
    assert not offences((ROOT / "tests").rglob("*.py"), house.sleeps)


def test_names_say_something() -> None:
    paths = [file.relative_to(ROOT) for file in house.listed_files(ROOT)]

    assert not [f"{path}: {finding.what}" for path in paths for finding in house.vague_names(path)]
    assert not offences(sources(), house.vague_classes)


def test_no_source_file_is_longer_than_a_person_reads() -> None:
    files = [file for file in house.listed_files(ROOT) if file.is_relative_to(ROOT / "src")]
    lengths = {file.relative_to(ROOT): len((house.text_of(file) or "").splitlines()) for file in files}

    assert not {str(file): length for file, length in lengths.items() if length > LINES_MAX}


def test_no_file_names_a_path_of_one_machine() -> None:
    assert not text_offences(house.machine_paths)
    assert not text_offences(lambda text: house.find_words(text, [str(ROOT)], "path of this machine"))


def test_no_file_names_a_package_registry() -> None:
    assert not text_offences(house.registry_hosts)


def test_every_room_is_on_the_map() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    architecture = (ROOT / "ARCHITECTURE.md").read_text()

    assert not {room for room in rooms if not re.search(rf"\b{room}/", architecture)}


def loaded_by(statements: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after `statements`."""
    script = f"{statements}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    process = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return {module.partition(".")[0] for module in json.loads(process.stdout.splitlines()[-1])}


def test_a_process_that_serves_the_api_loads_no_kernel() -> None:
    """The kernels' seconds and hundreds of megabytes, and their crashes, stay in child processes."""
    assert not loaded_by("import tempa.api.app") & NEVER_IN_THE_API


def test_knowing_what_the_engines_are_loads_no_kernel() -> None:
    targets = PYPROJECT["project"]["entry-points"]["tempa.engines"].values()
    imports = "\n".join(f"import {target.partition(':')[0]}" for target in targets)

    assert not loaded_by(imports) & NEVER_IN_THE_API


def test_the_look_into_a_process_sees_what_it_loaded() -> None:
    assert {"json", "sqlite3"} <= loaded_by("import sqlite3")
