"""The import law is kept, and each of its contracts catches what it was written against."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LAW = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
NAMES = {contract["id"]: contract["name"] for contract in LAW["contracts"]}

# A house in miniature: every room, each doing what it is allowed to do.
LAWFUL = {
    "core/clock.py": "import asyncio",
    "core/errors.py": "",
    "jobs/model.py": "import tempa.core.errors",
    "jobs/wire.py": "import pydantic\nimport tempa.jobs.model",
    "jobs/ports.py": "import tempa.jobs.model",
    "jobs/intake.py": "import tempa.jobs.ports, tempa.core.clock",
    "webhooks/ports.py": "import tempa.core.errors",
    "webhooks/wire.py": "",
    "settlement/ports.py": "",
    "settlement/wire.py": "",
    "adapters/stores/sql/queries.py": "import aiosql",
    "adapters/stores/migrations/runner.py": "import alembic, tempa.adapters.stores.sql",
    "adapters/stores/commands/flow.py": "import tempa.adapters.stores.sql.queries, tempa.jobs.ports",
    "adapters/stores/sqlite/store.py": "import sqlite3, tempa.adapters.stores.commands.flow",
    "adapters/stores/postgres/store.py": "import asyncpg, tempa.adapters.stores.commands.flow",
    "adapters/stores/postgres/schema.py": "import tempa.adapters.stores.migrations.runner",
    "adapters/wakes/in_process.py": "import asyncio",
    "adapters/wakes/postgres.py": "import asyncpg, tempa.adapters.wakes.in_process",
    "adapters/queues/redis_streams.py": "import redis, tempa.jobs.ports",
    "adapters/queues/rabbitmq.py": "import aio_pika",
    "adapters/senders/curl.py": "import pycurl, tempa.webhooks.ports",
    "engines/host/zygote.py": "import subprocess, tempa.jobs.ports",
    "engines/solid/about.py": "import tempa.jobs.ports",
    "engines/solid/opencascade.py": "import OCP.gp, tempa.engines.solid.about",
    "engines/splat/about.py": "import tempa.jobs.ports",
    "api/app.py": "import fastapi, tempa.jobs.intake, tempa.webhooks.wire",
    "console/app.py": "import jinja2",
    "client/client.py": "import httpx2, tempa.jobs.wire, tempa.core.errors",
    "testing/fakes.py": "import tempa.jobs.ports",
    "wiring/embedded.py": "import tempa.adapters.stores.sqlite.store, tempa.api.app, tempa.engines.host",
    "cli/main.py": "import tempa.wiring.embedded, tempa.client",
    "__main__.py": "import tempa.cli.main",
}


class Crime(NamedTuple):
    contract: str
    file: str
    imports: str


CRIMES = [
    Crime("layers", "core/errors.py", "import tempa.jobs.model"),
    Crime("layers", "core/errors.py", "def hidden():\n    import tempa.jobs.model"),
    Crime("layers", "core/errors.py", "import typing\nif typing.TYPE_CHECKING:\n    import tempa.jobs.model"),
    Crime("layers", "jobs/intake.py", "import tempa.webhooks.ports"),
    Crime("layers", "webhooks/ports.py", "import tempa.settlement.ports"),
    Crime("layers", "api/app.py", "import tempa.adapters.stores.sqlite.store"),
    Crime("layers", "adapters/senders/curl.py", "import tempa.wiring.embedded"),
    Crime("layers", "engines/solid/about.py", "import tempa.adapters.senders.curl"),
    Crime("layers", "stray.py", ""),
    Crime("layers", "shed/__init__.py", ""),
    Crime("pure", "jobs/intake.py", "import sqlite3"),
    Crime("pure", "webhooks/ports.py", "from subprocess import run"),
    Crime("pure", "settlement/ports.py", "import pycurl"),
    Crime("pure", "core/errors.py", "from fastapi import FastAPI"),
    Crime("pure", "jobs/wire.py", "def hidden():\n    import OCP.gp"),
    Crime("adapters", "adapters/senders/curl.py", "import tempa.adapters.stores.sqlite.store"),
    Crime("adapters", "adapters/queues/rabbitmq.py", "import tempa.adapters.queues.redis_streams"),
    Crime("adapters", "adapters/stores/postgres/store.py", "import tempa.adapters.stores.sqlite.store"),
    Crime("adapters", "adapters/stores/commands/flow.py", "import tempa.adapters.stores.sqlite.store"),
    Crime("adapters", "adapters/wakes/in_process.py", "import tempa.adapters.wakes.postgres"),
    Crime("engines", "engines/splat/about.py", "from tempa.engines.solid import about"),
    Crime("engines", "engines/solid/opencascade.py", "import tempa.engines.host.zygote"),
    Crime("client", "client/client.py", "import tempa.jobs.model"),
    Crime("client", "client/client.py", "from tempa.webhooks import ports"),
    Crime("client", "client/client.py", "import tempa.settlement.ports"),
    Crime("cycles", "jobs/model.py", "import tempa.jobs.ports"),
    Crime("cycles", "engines/solid/about.py", "def hidden():\n    import tempa.engines.solid.opencascade"),
]


def build(root: Path, files: dict[str, str]) -> Path:
    for name, source in files.items():
        path = root / "tempa" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        for folder in list(path.relative_to(root).parents)[:-1]:
            (root / folder / "__init__.py").touch()
    return root


def broken(source_root: Path) -> tuple[set[str], str]:
    """The ids of the contracts that the package under `source_root` breaks, and what the linter said."""
    command = "from importlinter.cli import lint_imports_command as main; main()"
    linter = subprocess.run(
        [sys.executable, "-c", command, "--no-logo", "--no-cache", str(ROOT / "pyproject.toml")],
        env={"PYTHONPATH": str(source_root), "PATH": "", "COLUMNS": "200"},
        cwd=source_root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = linter.stdout + linter.stderr
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)(?: \(.*\))?$", said, flags=re.MULTILINE))
    assert verdicts.keys() == set(NAMES.values()), said
    assert (linter.returncode == 0) == (set(verdicts.values()) == {"KEPT"}), said
    return {key for key, name in NAMES.items() if verdicts[name] == "BROKEN"}, said


def test_the_house_keeps_the_law() -> None:
    contracts, said = broken(ROOT / "src")

    assert not contracts, said


def test_what_the_law_allows_is_lawful(tmp_path: Path) -> None:
    contracts, said = broken(build(tmp_path, LAWFUL))

    assert not contracts, said


@pytest.mark.parametrize(
    "crime", CRIMES, ids=lambda crime: f"{crime.contract}-{crime.file}-{crime.imports[-32:]}"
)
def test_each_contract_catches_its_crime(tmp_path: Path, crime: Crime) -> None:
    guilty = {**LAWFUL, crime.file: f"{LAWFUL.get(crime.file, '')}\n{crime.imports}"}

    contracts, said = broken(build(tmp_path, guilty))

    assert crime.contract in contracts, said  # an import upwards closes a cycle too


def test_every_contract_has_a_crime_that_it_catches() -> None:
    assert {crime.contract for crime in CRIMES} == set(NAMES)


def test_a_room_that_exists_is_named_whole() -> None:
    """`tempa.x.**` leaves out the room's own `__init__.py`: it may stand for a missing room only."""
    placeholders = {
        expression.removesuffix(".**")
        for contract in LAW["contracts"]
        for expression in contract.get("source_modules", []) + contract.get("forbidden_modules", [])
        if re.fullmatch(r"tempa\.\w+\.\*\*", expression)
    }
    arrived = {
        room for room in placeholders if (ROOT / "src" / room.replace(".", "/") / "__init__.py").exists()
    }

    assert not arrived, f"write {arrived} without the stars in pyproject.toml"
