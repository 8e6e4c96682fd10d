"""Servers and receivers for the stories in this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.testing.receiver import Receiver
from tempa.testing.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the stories of a file that do not kill it."""
    with Server(tmp_path_factory.mktemp("tempa") / "data", {}) as running:
        yield running


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    """A client with the server's first key."""
    with server.http() as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Where webhooks arrive."""
    with Receiver() as listening:
        yield listening
