"""Entity tags: does the client have this already? (RFC 9110, section 13.1)."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

_TAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')


def asked_tags(headers: Headers) -> list[str] | None:
    """What `If-None-Match` names: tags in their quotes, or `["*"]`. None: it is not there."""
    values = headers.getlist("if-none-match")
    if not values:
        return None
    joined = ", ".join(values)
    return ["*"] if joined.strip() == "*" else _TAG.findall(joined)


def is_held(headers: Headers, etag: str) -> bool:
    """Whether the client holds `etag` already, by the weak comparison: answer 304."""
    asked = asked_tags(headers)
    return asked is not None and ("*" in asked or etag.removeprefix("W/") in asked)
