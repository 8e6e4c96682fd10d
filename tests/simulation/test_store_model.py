"""Any order of any commands, by workers alive and dead, on both databases: the store does as its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.simulation.machine import StoreMachine
from tests.simulation.places import Database, File

if TYPE_CHECKING:
    from collections.abc import Callable

    from tempa.testing.postgres import PostgresCluster
    from tests.simulation.places import Place

# The same examples each time, and a failure told as it was found: to shrink one on PostgreSQL takes minutes.
BRIEF = hypothesis.settings(
    derandomize=True,
    database=None,
    stateful_step_count=40,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
SHORT = {
    "sqlite": hypothesis.settings(BRIEF, max_examples=100),
    "postgres": hypothesis.settings(BRIEF, max_examples=20),
}
LONG = {
    "sqlite": hypothesis.settings(max_examples=2000, stateful_step_count=100, print_blob=True),
    "postgres": hypothesis.settings(max_examples=300, stateful_step_count=100, print_blob=True),
}


def machine(new_place: Callable[[], Place]) -> type[StoreMachine]:
    """On such places."""

    class Machine(StoreMachine):
        def new_place(self) -> Place:
            return new_place()

    return Machine


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def made(kind: str, request: pytest.FixtureRequest) -> type[StoreMachine]:
    if kind == "sqlite":
        return machine(File)
    cluster: PostgresCluster = request.getfixturevalue("cluster")
    template: str = request.getfixturevalue("template")
    return machine(lambda: Database(cluster, template))


def test_the_store_does_as_its_model(made: type[StoreMachine], kind: str) -> None:
    run_state_machine_as_test(made, settings=SHORT[kind])


@pytest.mark.chaos
def test_the_store_does_as_its_model_for_long(made: type[StoreMachine], kind: str) -> None:
    run_state_machine_as_test(made, settings=LONG[kind])
