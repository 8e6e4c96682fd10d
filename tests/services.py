"""Real servers for tests: the URL from the environment, else from a wheel or Debian, else a visible skip."""

from __future__ import annotations

import asyncio
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tempa.adapters.stores.postgres.schema import prepare
from tempa.testing.postgres import NoPostgres, PostgresCluster, running_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

_numbers = itertools.count()


def fresh_name() -> str:
    """A database name that no other test has."""
    return f"tempa_{os.getpid()}_{next(_numbers)}"


@pytest.fixture(scope="session")
def cluster() -> Iterator[PostgresCluster]:
    """A PostgreSQL for all tests of this process that do not stop it."""
    try:
        with running_cluster() as running:
            yield running
    except NoPostgres as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def template(cluster: PostgresCluster) -> str:
    """The name of a database with Tempa's tables, to copy."""
    cluster.execute("create database tempa_template")
    with ThreadPoolExecutor(1) as elsewhere:  # this thread may run a loop already
        elsewhere.submit(lambda: asyncio.run(prepare(cluster.url("tempa_template")))).result()
    return "tempa_template"


@pytest.fixture
def database(cluster: PostgresCluster, template: str) -> str:
    """The URL of a fresh database with Tempa's tables."""
    return fresh_database(cluster, template)


def fresh_database(cluster: PostgresCluster, template: str) -> str:
    """The URL of a new copy of `template`."""
    name = fresh_name()
    cluster.execute(f"create database {name} template {template} strategy file_copy")
    return cluster.url(name)
