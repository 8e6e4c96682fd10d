"""The OpenAPI document, read by an independent reader. tests/integration/api attacks the server with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from fastapi.routing import APIRoute

from tempa.api.app import _ROUTERS
from tempa.core.accounts import SCOPES
from tempa.core.errors import PROBLEMS
from tempa.core.events import FAMILIES, OPERATOR_EVENTS, TEST_EVENT
from tempa.jobs.model import JobError
from tempa.jobs.wire import ANNOUNCED
from tempa.testing.seeds import SEED_001
from tests.unit.api.conftest import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2


@pytest.fixture
async def document(http: httpx2.AsyncClient) -> dict[str, Any]:
    answer = await http.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    found = set(references(document))
    assert len(found) > 20
    assert found <= {f"#/components/schemas/{name}" for name in schemas}
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


async def test_the_seed_is_an_example_that_fits_its_schema(document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"]["GenerateModel"]
    assert schema["examples"] == [SEED_001]
    whole = {**schema, "components": document["components"]}
    jsonschema.validate(SEED_001, whole)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**SEED_001, "unknown": 1}, whole)


async def test_every_webhook_is_there(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    of_jobs = {f"{family}.{verb}" for family in FAMILIES for verb in ANNOUNCED}
    assert set(document["webhooks"]) == {*of_jobs, *OPERATOR_EVENTS, TEST_EVENT}
    body = document["webhooks"]["cad_generation.completed"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["$ref"] == "#/components/schemas/WebhookBody"


OPEN = {
    ("get", path)
    for path in ("/livez", "/readyz", "/metrics", "/.well-known/jwks.json", "/v1/artifacts/{job_id}/{name}")
}
SIGNED = {("post", "/v1/payments/ingress/{source}")}  # by a secret of the source's, not by a key


async def test_what_needs_a_key_says_so_and_means_it(world: World, document: dict[str, Any]) -> None:
    """The document against the server: asked without a key, and with one that has every other scope."""
    found = list(operations(document))
    without = {(method, path) for method, path, operation in found if "security" not in operation}
    assert without == OPEN | SIGNED
    for method, path, operation in found:
        if (method, path) in SIGNED:
            continue
        url = re.sub(r"{[a-z_]+}", "x", path)
        async with world.bare_client() as anyone:
            answer = await anyone.request(method, url)
        assert (answer.status_code == 401) == ("401" in operation["responses"]) == ("security" in operation)
        for scope in operation.get("security", [{}])[0].get("apiKey", []):
            async with world.client(*({*SCOPES} - {scope, "admin"})) as other:
                refused = await other.request(method, url)
            assert (refused.status_code, refused.json().get("scope")) == (403, scope), (method, path)


async def test_every_refusal_is_a_problem_and_names_what_it_may_be(document: dict[str, Any]) -> None:
    told: set[str] = set()
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")) and (path, status) != ("/readyz", "503"):
                content = answer["content"]
                assert list(content) == ["application/problem+json"], (method, path, status)
                assert content["application/problem+json"]["schema"]["$ref"].endswith("/ProblemDetails")
                slugs = re.findall(r"`([a-z-]+)`: ", answer["description"])
                assert slugs, (method, path, status)
                assert {PROBLEMS[slug].status for slug in slugs} == {int(status)}
                told.update(slugs)
    before_a_route = {"malformed-http", "request-timeout", "head-too-large", "too-many-connections"}
    assert set(PROBLEMS) - told <= {"method-not-allowed", "rental-required"} | before_a_route


async def test_operations_are_those_that_are_served_and_have_names_of_their_own(
    document: dict[str, Any],
) -> None:
    found = list(operations(document))
    names = [operation["operationId"] for _, _, operation in found]
    assert len(names) == len(set(names))
    served = {
        (method.lower(), route.path)
        for router in _ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert {(method, path) for method, path, _ in found} == served
    assert {"get_job", "generate_model", "watch_job", "upload_file"} <= set(names)


async def test_real_jobs_fit_their_schema_to_the_last_field(
    world: World, http: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    queued, completed, removed, failed = [await world.a_job() for _ in range(4)]
    await world.finish(completed)
    await world.finish(removed)
    assert (await http.delete(f"/v1/jobs/{removed.id}")).status_code == 204
    error = JobError(code="KERNEL_TIMEOUT", message="Too slow.", retryable=False)
    world.jobs.tell(failed.id, "job.failed", error=error)
    schema = {**document["components"]["schemas"]["JobView"], "components": document["components"]}
    check = jsonschema.Draft202012Validator(schema)
    for job in (queued, completed, removed, failed):
        view = (await http.get(f"/v1/jobs/{job.id}")).json()
        assert set(view) == set(schema["properties"])
        check.validate(view)
        for field in schema["required"]:
            assert not check.is_valid({**view, field: {"no": 1}}), field
