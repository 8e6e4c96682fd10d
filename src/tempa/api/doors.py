"""The routes that take requests for jobs, and what each may be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tempa.jobs.inputs import fields as input_fields
from tempa.jobs.ports import Engine
from tempa.jobs.wire import Convert, GenerateModel, GenerateSplat, JobOptions

REQUEST = "request"
"""The field of a form that holds the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One route for jobs of one kind."""

    route: str
    kind: str  # of the engines that it offers
    engine: str  # that works when none is named
    model: type[JobOptions]
    inputs: tuple[str, ...] = ()  # that its engines take

    def offers(self, engines: Mapping[str, Engine]) -> dict[str, Engine]:
        """Its engines, of those that run here."""
        return {name: engine for name, engine in engines.items() if engine.kind == self.kind}

    @property
    def share(self) -> frozenset[str]:
        """The fields that are the engine's to read."""
        own = frozenset(self.model.model_fields) - frozenset(JobOptions.model_fields) - {"engine"}
        return own - input_fields(*self.inputs)

    def content(self) -> dict[str, Any]:
        """What its body may be, for the OpenAPI document."""
        schema = {"$ref": f"#/components/schemas/{self.model.__name__}"}
        content: dict[str, Any] = {"application/json": {"schema": schema}}
        if self.inputs:
            files = {name: {"type": "string", "format": "binary"} for name in self.inputs}
            content["multipart/form-data"] = {
                "schema": {
                    "type": "object",
                    "properties": {**files, REQUEST: schema},
                    "additionalProperties": False,
                },
                "encoding": {REQUEST: {"contentType": "application/json"}},
            }
        return content


MODELS = Door(route="/v1/models/generate", kind="cad", engine="opencascade-brep", model=GenerateModel)
SPLATS = Door(
    route="/v1/splats/generate",
    kind="splat",
    engine="relief-splat",
    model=GenerateSplat,
    inputs=("image", "depth", "mesh"),
)
CONVERSIONS = Door(route="/v1/convert", kind="conv", engine="splat-convert", model=Convert, inputs=("file",))
DOORS = (MODELS, SPLATS, CONVERSIONS)
