"""The OpenAPI document, read by an independent reader. tests/integration/api attacks the server with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tempa.core.events import FAMILIES
from tempa.jobs.wire import ANNOUNCED
from tests.unit.api.conftest import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2

SEED_001 = {
    "engine": "opencascade-brep",
    "export_format": "step",
    "parameters": {
        "outer_diameter": 120.5,
        "inner_diameter": 45.0,
        "length": 300.0,
        "fillet_radius": 2.5,
        "hole_pattern": {"count": 6, "pitch_diameter": 80.0, "hole_diameter": 10.0},
    },
}


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
    assert set(document["webhooks"]) == {f"{family}.{verb}" for family in FAMILIES for verb in ANNOUNCED}
    body = document["webhooks"]["cad_generation.completed"]["post"]["requestBody"]["content"]
    assert body["application/json"]["schema"]["$ref"] == "#/components/schemas/WebhookBody"


async def test_what_needs_a_key_says_so_and_how_it_refuses(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        refused = operation["responses"].get("401")
        assert (refused is None) == ("security" not in operation), (method, path)
        for status, answer in operation["responses"].items():
            if status.startswith(("4", "5")) and (path, status) != ("/readyz", "503"):
                assert list(answer["content"]) == ["application/problem+json"], (path, status)


async def test_operations_have_names_of_their_own(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names)) >= 25


async def test_a_real_job_fits_the_schema(
    world: World, http: httpx2.AsyncClient, document: dict[str, Any]
) -> None:
    job = await world.finish(await world.a_job())
    schema = {**document["components"]["schemas"]["JobView"], "components": document["components"]}
    jsonschema.validate((await http.get(f"/v1/jobs/{job.id}")).json(), schema)
