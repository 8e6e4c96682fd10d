"""What a job is given: bytes that are its own from admission on, or a URL that its worker fetches.

A job's own inputs lie under the prefix of an attempt that never is, the 0th: they go when its files go.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tempa.core.errors import Problem, Refusal
from tempa.core.ids import new_id
from tempa.jobs.model import StoredArtifact
from tempa.jobs.ports import StoredObject

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from tempa.core.limits import Limits
    from tempa.jobs.model import Request
    from tempa.jobs.ports import ArtifactStore, Engine, JobStore, Takes

_logger = logging.getLogger(__name__)

FOLDER = "inputs"
"""Where an attempt finds them, below its own folder; each file has its input's name."""

WAYS = ("url", "base64", "artifact")
"""How a JSON request gives an input: in the field `<name>_<way>`."""

_CHUNK_BYTES = 1 << 20
_IN_BASE64 = ";base64"
_ARTIFACT_SHAPE = 'Must be {"file_id": "…"}, or {"job_id": "…", "name": "…"}.'


def prefix(job_id: str) -> str:
    """Where a job's own inputs lie."""
    return f"{job_id}.a0"


def is_prefix(stored: str) -> bool:
    """Whether what lies under this prefix are inputs."""
    return stored.endswith(".a0")


def key(job_id: str, name: str) -> str:
    """Where one of them lies."""
    return f"{prefix(job_id)}/{name}"


def fields(*names: str) -> frozenset[str]:
    """The fields of a JSON request that give these inputs."""
    return frozenset(f"{name}_{way}" for name in names for way in WAYS)


@dataclass(frozen=True, slots=True)
class Source:
    """An input as a request gave it: bytes the artifact store has, or a URL; and which field named it."""

    pointer: str
    stored: StoredObject | None = None
    url: str | None = None

    def reference(self) -> dict[str, Any]:
        """What a job's request keeps of it: what it is, never where it was."""
        if self.stored is None:
            return {"url": self.url}
        return {"sha256": self.stored.sha256, "file_size_bytes": self.stored.size_bytes}


@dataclass(frozen=True, slots=True)
class Inputs:
    """A request's inputs by name, and everything that is wrong with them."""

    sources: Mapping[str, Source]
    problems: tuple[Problem, ...] = ()
    blocked: tuple[Problem, ...] = ()  # URLs whose address may not be called
    fields: frozenset[str] = frozenset()  # of the request, that are read by it

    def references(self) -> dict[str, Any]:
        """As `Request.inputs` has them."""
        return {name: source.reference() for name, source in self.sources.items()}

    def stored(self) -> dict[str, StoredObject]:
        """Those whose bytes the artifact store has."""
        return {name: source.stored for name, source in self.sources.items() if source.stored is not None}


NO_INPUTS = Inputs({})


def is_fetched(request: Request) -> bool:
    """Whether any input is named by URL: then nobody knows before it runs what is asked for."""
    return any("url" in reference for reference in request.inputs.values())


def own(job_id: str, request: Request) -> dict[str, StoredObject]:
    """The inputs that lie with a job: what a retry of it is given."""
    return {
        name: StoredObject(key(job_id, name), reference["file_size_bytes"], reference["sha256"])
        for name, reference in request.inputs.items()
        if "sha256" in reference
    }


async def keep(artifacts: ArtifactStore, job_id: str, given: Mapping[str, StoredObject]) -> None:
    """Give a job copies of its own. Raises `Refusal` when an original has gone, OSError of the disk."""
    originals = [
        StoredArtifact(
            name=name,
            role="input",
            file_format="",
            media_type="",
            size_bytes=one.size_bytes,
            sha256=one.sha256,
            key=one.key,
        )
        for name, one in given.items()
    ]
    if await artifacts.copy(prefix(job_id), originals) is None:
        raise Refusal("gone", "A file that this request names was removed a moment ago. Send it again.")


@dataclass(kw_only=True)
class Collector:
    """Finds a request's inputs, stores those it brings along, and looks at them.

    What is brought along lies under an upload's id that no row knows: `close` deletes it once the job has
    copies of its own; after a crash the janitor does.
    """

    store: JobStore
    artifacts: ArtifactStore
    limits: Limits
    account: str
    check_url: Callable[[str], str | None]  # why a URL may not be fetched
    _brought: list[str] = field(default_factory=list)
    _problems: list[Problem] = field(default_factory=list)
    _blocked: list[Problem] = field(default_factory=list)

    async def bring(self, takes: Takes, pointer: str, chunks: AsyncIterator[bytes]) -> Source:
        """Store bytes that come with the request. Raises `Refusal` past the limit, OSError of the disk."""
        stored_as = new_id("file")
        self._brought.append(stored_as)
        most = takes.size_bytes_max(self.limits)
        try:
            return Source(pointer, await self.artifacts.receive(stored_as, chunks, most))
        except Refusal as refusal:
            if refusal.slug != "body-too-large" or takes.too_large is None:
                raise
            message = f"At most {most} bytes."
            problem = Problem(pointer, message, most, takes.too_large)
            raise Refusal("invalid-request", message, (problem,), code=takes.too_large) from None

    async def collect(
        self, document: Mapping[str, Any], engine: Engine, names: Sequence[str], brought: Mapping[str, Source]
    ) -> Inputs:
        """Every input that `engine` takes of those that the route has; `brought` came beside the document."""
        sources = {}
        for takes in engine.takes:
            source = await self._find(document, takes, brought.get(takes.name))
            if source is not None:
                sources[takes.name] = source
                await self._look(engine, takes.name, source, document.get("parameters"))
        self._refuse_unused(document, engine, names, brought)
        return Inputs(sources, tuple(self._problems), tuple(self._blocked), fields(*names))

    async def close(self) -> None:
        """Delete what was brought: the job that was made of it has its own."""
        for stored_as in self._brought:
            try:
                await self.artifacts.delete(stored_as)
            except OSError as error:
                _logger.warning("cannot be deleted: %s", error.strerror or error, extra={"of": stored_as})

    async def _find(self, document: Mapping[str, Any], takes: Takes, brought: Source | None) -> Source | None:
        ways = [way for way in WAYS if document.get(f"{takes.name}_{way}") is not None]
        if len(ways) + (brought is not None) > 1:
            pointer = f"/{takes.name}_{ways[-1]}"
            self._problems.append(Problem(pointer, f"Give one {takes.name}, in one way only."))
            return None
        if ways:
            return await self._read(takes, ways[0], document[f"{takes.name}_{ways[0]}"])
        if brought is None and takes.required:
            names = ", ".join(f"{takes.name}_{way}" for way in WAYS)
            message = f"Give one of {names}, or send a form with the file {takes.name}."
            self._problems.append(Problem(f"/{takes.name}_artifact", message))
        return brought

    async def _read(self, takes: Takes, way: str, value: Any) -> Source | None:
        pointer = f"/{takes.name}_{way}"
        match way:
            case "url":
                return self._read_url(pointer, value)
            case "base64":
                return await self._read_base64(takes, pointer, value)
            case _:
                return await self._read_artifact(pointer, value)

    def _read_url(self, pointer: str, value: Any) -> Source | None:
        if not isinstance(value, str):
            return self._fault(pointer, "Must be a string.")
        why = self.check_url(value)
        if why is not None:
            self._blocked.append(Problem(pointer, why))
            return None
        return Source(pointer, url=value)

    async def _read_base64(self, takes: Takes, pointer: str, value: Any) -> Source | None:
        if not isinstance(value, str):
            return self._fault(pointer, "Must be a string of base64.")
        head, _, text = value.partition(",") if value.startswith("data:") else (_IN_BASE64, "", value)
        if not head.lower().endswith(_IN_BASE64):  # RFC 2397: without it, the rest is text with percent signs
            return self._fault(pointer, "A data URL begins with data:…;base64, here.")
        try:
            content = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return self._fault(pointer, "This is not base64 (RFC 4648 section 4).")
        if not content:
            return self._fault(pointer, "This is empty.")
        return await self.bring(takes, pointer, _chunks(content))

    async def _read_artifact(self, pointer: str, value: Any) -> Source | None:
        match value:
            case {"file_id": str(file_id), **rest} if not rest:
                file = await self.store.file(self.account, file_id)
                if file is None:
                    return self._fault(f"{pointer}/file_id", "There is no such file in this account.")
                return Source(pointer, StoredObject(file.key, file.size_bytes, file.sha256))
            case {"job_id": str(job_id), "name": str(name), **rest} if not rest:
                return await self._read_result(pointer, job_id, name)
            case _:
                return self._fault(pointer, _ARTIFACT_SHAPE)

    async def _read_result(self, pointer: str, job_id: str, name: str) -> Source | None:
        job = await self.store.job(self.account, job_id)
        if job is None:
            return self._fault(f"{pointer}/job_id", "There is no such job in this account.")
        if job.result is None or job.removed:
            return self._fault(f"{pointer}/job_id", f"This job has no files: it is {job.status}.")
        for artifact in job.result.artifacts:
            if artifact.name == name:
                return Source(pointer, StoredObject(artifact.key, artifact.size_bytes, artifact.sha256))
        there = ", ".join(artifact.name for artifact in job.result.artifacts)
        return self._fault(f"{pointer}/name", f"This job has no file of this name; it has {there}.")

    async def _look(self, engine: Engine, name: str, source: Source, parameters: object) -> None:
        """At the first bytes, where they are here: a fetched input is looked at when it runs."""
        if source.stored is None:
            return
        path = await self.artifacts.path(source.stored.key)
        if path is None:
            self._problems.append(Problem(source.pointer, "This file was removed."))
            return
        problem = await asyncio.to_thread(engine.look, name, path, parameters, self.limits)
        if problem is not None:
            self._problems.append(Problem(source.pointer, problem.message, problem.limit, problem.code))

    def _refuse_unused(
        self, document: Mapping[str, Any], engine: Engine, names: Sequence[str], brought: Mapping[str, Source]
    ) -> None:
        for name in sorted(set(names) - {takes.name for takes in engine.takes}):
            pointers = [f"/{field}" for field in sorted(fields(name)) if document.get(field) is not None]
            pointers += [source.pointer for source in [brought.get(name)] if source is not None]
            for pointer in pointers:
                self._fault(pointer, f"The engine {engine.name} takes no {name}.")

    def _fault(self, pointer: str, message: str) -> Source | None:
        """Keep a problem; there is no source then."""
        self._problems.append(Problem(pointer, message))
        return None


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(content), _CHUNK_BYTES):
        yield content[start : start + _CHUNK_BYTES]
