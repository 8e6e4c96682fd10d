"""Servers and receivers for the stories in this room: the same stories on both wirings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tempa.testing.receiver import Receiver
from tests.wirings import Wiring

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

    from tempa.testing.server import Fleet, Server


@pytest.fixture(scope="module", params=["embedded", "distributed"])
def wiring(request: pytest.FixtureRequest) -> Wiring:
    """How the servers of a file's stories are wired."""
    if request.param == "embedded":
        return Wiring(None, "")
    return Wiring(request.getfixturevalue("cluster"), request.getfixturevalue("template"))


@pytest.fixture(scope="module")
def server(wiring: Wiring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server | Fleet]:
    """One server for the stories of a file that do not kill it."""
    with wiring.server(tmp_path_factory.mktemp("tempa") / "data") as running:
        yield running


@pytest.fixture
def http(server: Server | Fleet) -> Iterator[httpx2.Client]:
    """A client with the server's first key."""
    with server.http() as client:
        yield client


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Where webhooks arrive."""
    with Receiver() as listening:
        yield listening
