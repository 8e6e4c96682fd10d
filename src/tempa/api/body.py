"""Reading bodies: bounded, of the right media type, strict."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from tempa.core.canonical import read_json
from tempa.core.errors import Problem, Refusal
from tempa.core.shapes import escape, shape_problems
from tempa.jobs.intake import invalid

_Model = TypeVar("_Model", bound=BaseModel)

# No request of ours has a tenth of it; 250,000 entries that are all wrong cost 0.6 s and 160 MB to tell.
_ENTRIES_MAX = 10_000

_DIGITS = re.compile(r"[0-9]{1,18}")


async def read_document(request: Request, size_bytes_max: int) -> Any:
    """The JSON value of a body.

    Raises `Refusal`: `body-too-large` as soon as the announced or the received bytes pass the limit,
    `unsupported-media-type`, `unreadable-json` (also for a body that is empty), `invalid-request` for
    lists and objects beyond all measure.
    """
    refuse_announced(request, size_bytes_max)
    media_type = one_header(request, "content-type")
    if media_type is not None:
        _check_media_type(request, media_type)
    body = await _read(request, size_bytes_max)
    if not body:
        raise Refusal("unreadable-json", "The body is empty. Send a JSON object.")
    if media_type is None:
        raise _unsupported("The body has no Content-Type. Send application/json.")
    document = read_json(body)
    if body.count(b",") >= _ENTRIES_MAX and (problems := [*_endless(document, "")]):
        raise invalid(problems)
    return document


def _endless(value: Any, pointer: str) -> Iterator[Problem]:
    if not isinstance(value, (dict, list)):
        return
    if len(value) > _ENTRIES_MAX:
        yield Problem(pointer, f"At most {_ENTRIES_MAX} entries.", _ENTRIES_MAX)
        return
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from _endless(inner, f"{pointer}/{escape(str(name))}")


async def read_model(request: Request, size_bytes_max: int, model: type[_Model]) -> _Model:
    """The body as a strict model. Raises `Refusal` with every problem of its shape."""
    document = await read_document(request, size_bytes_max)
    if not isinstance(document, dict):
        raise invalid([Problem("", "The body must be a JSON object.")])
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise invalid(shape_problems(error)) from None


async def read_nothing(request: Request, size_bytes_max: int) -> None:
    """For calls that take no fields: an empty body, or an empty JSON object."""
    refuse_announced(request, size_bytes_max)
    body = await _read(request, size_bytes_max)
    document = read_json(body) if body else {}
    if document != {} or not isinstance(document, dict):
        raise invalid([Problem("", "This call takes no fields; send no body, or {}.")])


def has_body(request: Request) -> bool:
    """Whether the request brings one, for calls that can do without (RFC 9112 section 6.3)."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def refuse_announced(request: Request, size_bytes_max: int) -> None:
    """Refuse a body that says itself that it is too large, before any of it is read."""
    announced = request.headers.get("content-length", "")
    if _DIGITS.fullmatch(announced) and int(announced) > size_bytes_max:
        raise too_large(size_bytes_max)


async def bounded(request: Request, size_bytes_max: int) -> AsyncGenerator[bytes, None]:
    """A body of any kind as it streams in. Raises `Refusal`: `body-too-large`, `unsupported-media-type`."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal("unsupported-media-type", "Send the file without Content-Encoding.")
    refuse_announced(request, size_bytes_max)
    size = 0
    async with aclosing(request.stream()) as body:
        async for chunk in body:
            size += len(chunk)
            if size > size_bytes_max:
                raise too_large(size_bytes_max)
            yield chunk


def not_stored() -> Refusal:
    """503: the disk or the bucket would not have a file."""
    detail = "The file could not be stored. Try again later."
    return Refusal("store-unavailable", detail, headers={"Retry-After": "10"})


def too_large(size_bytes_max: int) -> Refusal:
    """413."""
    return Refusal(
        "body-too-large",
        f"The body may have at most {size_bytes_max} bytes.",
        (Problem("", f"At most {size_bytes_max} bytes.", size_bytes_max),),
    )


def one_header(request: Request, name: str) -> str | None:
    """A header that may be there once. Raises `Refusal`: two may be understood differently by two readers."""
    values = request.headers.getlist(name)
    if len(values) > 1:
        raise invalid([Problem("", f"The header {name.title()} is there {len(values)} times; send it once.")])
    return values[0] if values else None


async def _read(request: Request, size_bytes_max: int) -> bytes:
    received = bytearray()
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            received += chunk
            if len(received) > size_bytes_max:
                raise too_large(size_bytes_max)
    return bytes(received)


def _check_media_type(request: Request, media_type: str) -> None:
    if not _is_json(media_type):
        raise _unsupported(f"The body is {media_type[:80]}. Send application/json in UTF-8.")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise _unsupported("Send the body without Content-Encoding.")


def _is_json(media_type: str) -> bool:
    kind, *parameters = (part.strip().lower() for part in media_type.split(";"))
    charsets = [part.partition("=")[2].strip(' "') for part in parameters if part.startswith("charset")]
    return kind == "application/json" and all(charset in {"utf-8", "utf8"} for charset in charsets)


def _unsupported(detail: str) -> Refusal:
    return Refusal("unsupported-media-type", detail, headers={"Accept": "application/json"})
