"""The server does what its OpenAPI document says: attacked with it by schemathesis, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok

from tests.integration.api.test_treasury import STANDING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from tests.integration.api.conftest import Served


ENDLESS = "/v1/webhooks/stream"  # what is right is served, and never ends


async def test_statuses_headers_and_bodies_are_as_documented_and_the_rest_is_refused(served: Served) -> None:
    parts = served.app.state.parts  # one that takes payments, so that 501 is never right
    served.app.state.parts = replace(parts, standing=lambda: STANDING, refunds=True)
    assert await asyncio.to_thread(attack_all, f"{served.url}/openapi.json", served.secret) >= 25


def attack_all(document_url: str, secret: str) -> int:
    attacked = 0
    for found in schemathesis.openapi.from_url(document_url).get_all_operations():
        operation = found.ok() if isinstance(found, Ok) else pytest.fail(str(found))
        if operation.path != ENDLESS:
            attack(operation.as_strategy(generation_mode=GenerationMode.POSITIVE), secret)
        with contextlib.suppress(Unsatisfiable):  # what takes nothing can be given nothing wrong
            attack(operation.as_strategy(generation_mode=GenerationMode.NEGATIVE), secret)
        attacked += 1
    return attacked


def attack(cases: SearchStrategy[Any], secret: str) -> None:
    # What no schema can say (a cursor that was given out, limits between fields) is refused too.
    beyond_schemas = CHECKS.get_one("positive_data_acceptance")

    @given(case=cases)
    @settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        assume("wait" not in case.query)  # it would be served, and take its 30 s
        headers = {"Authorization": f"Bearer {secret}"}
        case.call_and_validate(headers=headers, excluded_checks=[beyond_schemas])

    check()
