"""Each lint of the house catches what it was written against, and leaves alone what only looks like it."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import pytest

import house

if TYPE_CHECKING:
    from collections.abc import Callable


def found(lint: Callable[[ast.AST], list[house.Finding]], source: str) -> list[str]:
    return [finding.what for finding in lint(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("import time as t\nt.monotonic()", "time.monotonic"),
        ("from time import time as wall\nwall()", "time.time"),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0)", "asyncio.sleep"),
        ("from datetime import UTC, datetime\ndatetime.now(UTC)", "datetime.datetime.now"),
        ("import datetime as dt\ndt.datetime.utcnow()", "datetime.datetime.utcnow"),
        ("import time\ndef f(clock=time.monotonic): ...", "time.monotonic"),
        ("import random\nrandom.uniform(0, 1)", "random.uniform"),
        ("from random import choice\nchoice([1])", "random.choice"),
        ("from random import Random\nRandom()", "random.Random() without a seed"),
        ("def f():\n    import uuid\n    uuid.uuid4()", "uuid.uuid4"),
    ],
)
def test_clock_words_are_found_under_any_name(source: str, word: str) -> None:
    assert found(house.clock_words, source) == [word]


@pytest.mark.parametrize(
    "source",
    [
        "async def f(clock):\n    clock.now()\n    await clock.sleep(1)",
        "from datetime import datetime\ndef f(at: datetime) -> datetime: return datetime.fromtimestamp(0)",
        "from random import Random\ndef f(dice: Random) -> float: return dice.uniform(0, 1)\nRandom(7)",
        "import asyncio\nasync def f():\n    async with asyncio.timeout(1): ...",
    ],
)
def test_a_clock_that_was_handed_in_is_no_crime(source: str) -> None:
    assert found(house.clock_words, source) == []


@pytest.mark.parametrize(
    "statement",
    [
        "select id from job where id = :id",
        "SELECT 1",
        "select 1",
        "select count(*) from job",
        "insert into job (id) values (1)",
        "INSERT OR IGNORE INTO job VALUES (1)",
        "update job set state = 2",
        "delete from job where id = 1",
        "with due as (select 1) update job set state = 1",
        "  \n  select *\n  from job\n",
        "create unique index ix on job (id)",
    ],
)
def test_sql_is_found(statement: str) -> None:
    assert len(found(house.sql_literals, f"query = {statement!r}")) == 1
    assert len(found(house.sql_literals, f"query = f{statement + ' {x}'!r}")) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""select is a word in a docstring; so is insert into job."""',
        'def f():\n    """update job set state = 2, says the docstring."""',
        "help = 'Select a file from the list'",
        "help = 'Update the endpoint, set by set'",
        "why = 'with the fillet as (nearly) the whole wall'",
        "why = 'delete the job'",
        "pragma = 'pragma journal_mode = wal'",
        "begin = 'begin immediate'",
    ],
)
def test_prose_is_no_sql(source: str) -> None:
    assert found(house.sql_literals, source) == []


def test_hidden_imports_are_found() -> None:
    source = (
        "import os\nif os:\n    import re\nclass C:\n    async def f(self):\n        from json import loads"
    )

    assert found(house.hidden_imports, source) == ["import hidden in f()"]


def test_foreign_imports_are_found() -> None:
    source = (
        "import os, json.decoder\nimport pydantic.types\n"
        "from pydantically import x\nimport numpy as np\nfrom . import y"
    )

    assert found(lambda tree: house.foreign_imports(tree, {"pydantic"}), source) == [
        "imports pydantically",
        "imports numpy",
        "imports .",
    ]


@pytest.mark.parametrize("call", ["sleep(1)", "sleep(0.1)", "sleep(n)", "sleep(0, n)", "[*map(sleep, [0])]"])
def test_sleeping_tests_are_found(call: str) -> None:
    assert found(house.sleeps, f"from time import sleep\n{call}") == ["time.sleep"]


def test_letting_others_run_is_no_sleep() -> None:
    assert found(house.sleeps, "import asyncio, time\nasyncio.sleep(0)\ntime.monotonic()") == []


@pytest.mark.parametrize(
    "path", ["src/utils.py", "src/job_helpers.py", "tests/common/x.py", "a/Misc.md", "manager.sql"]
)
def test_vague_file_names_are_found(path: str) -> None:
    assert len(house.vague_names(PurePath(path))) == 1


@pytest.mark.parametrize(
    "path", ["src/jobs/intake.py", "docs/commonplace.md", "src/engines/utility_knife.py"]
)
def test_plain_file_names_are_fine(path: str) -> None:
    assert house.vague_names(PurePath(path)) == []


def test_vague_class_names_are_found() -> None:
    source = "class JobManager: ...\nclass PathUtils: ...\nclass Managed: ...\nclass UtilityModel: ..."

    assert len(found(house.vague_classes, source)) == len(("JobManager", "PathUtils"))


@pytest.mark.parametrize("folder", ["root", "work", "home", "Users"])
def test_paths_of_one_machine_are_found(folder: str) -> None:
    assert [finding.line for finding in house.machine_paths(f"one\ncd /{folder}/ana/tempa")] == [2]
    assert (
        house.machine_paths(f"see docs/{folder}/page, ~/{folder}/x, https://a.example/{folder}/x, /{folder}")
        == []
    )


@pytest.mark.parametrize("host", ["files.pythonhosted", "registry.npmjs", "pypi", "index.crates"])
def test_package_registries_are_found(host: str) -> None:
    ending = "io" if host.endswith("crates") else "org"

    assert len(house.registry_hosts(f"fetch https://{host}.{ending}/x")) == 1
    assert house.registry_hosts("numpy==2.4.6  # from the package index") == []


def test_a_mirror_of_a_registry_is_found() -> None:
    assert len(house.registry_hosts("--index-url https://" + "mirror.example/simple")) == 1


def test_without_git_the_walk_lists_what_was_written_not_what_was_made(tmp_path: Path) -> None:
    for name in (
        "a.py",
        ".gitignore",
        ".ci/run",
        ".venv/b.py",
        "src/__pycache__/c.pyc",
        "dist/d.whl",
        "src/e.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")

    listed = [str(path.relative_to(tmp_path)) for path in house.listed_files(tmp_path)]

    assert listed == [".ci/run", ".gitignore", "a.py", "src/e.py"]


def test_with_git_the_list_leaves_out_what_is_ignored(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name, text in {".gitignore": "*.log\n", "new.py": "", "run.log": ""}.items():
        (tmp_path / name).write_text(text)

    assert [path.name for path in house.listed_files(tmp_path)] == [".gitignore", "new.py"]
