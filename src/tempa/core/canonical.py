"""One request, one form: the strict JSON reader, the canonical writer and the fingerprint."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785

from tempa.core.errors import Refusal

_SAFE_INTEGER = 2**53 - 1  # beyond it JSON's readers disagree (RFC 7493 section 2.2): read as a float
_INTEGER_DIGITS_MAX = 17  # enough for a safe integer and its sign; int() refuses 4,300 digits
_SURELY_SAFE_DIGITS = 15
_DEPTH_MAX = 64  # no request of ours nests deeper than a dozen; the parser's own limit is a crash


def read_json(body: bytes, *, is_kept: bool = True) -> Any:
    """Parse a request body strictly.

    Refuses (400 `unreadable-json`) what lenient readers let through and two readers may
    understand differently: duplicate keys (RFC 8259 section 4), `NaN` and `Infinity` tokens,
    invalid UTF-8, lone surrogates, U+0000 (no database keeps it in text), and nesting beyond 64
    levels. `1e999` is valid JSON: it comes out as infinity, for the schema to refuse.

    `is_kept`: False where nothing of it is kept or given on. Characters that no database holds then pass,
    integers of any size, and as many levels as the parser takes: half the time goes into looking at those.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(f"invalid UTF-8 at byte {error.start}") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_read_int if is_kept else None,
        )
        if is_kept:
            _check(value, text)
    except json.JSONDecodeError as error:
        raise _unreadable(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError:
        raise _unreadable("a number has too many digits") from None
    except RecursionError:
        raise _unreadable(f"nested deeper than {_DEPTH_MAX} levels") from None
    return value


def canonical(value: Any) -> bytes:
    """The RFC 8785 form (JCS): equal values, equal bytes, whatever the spelling of their numbers."""
    return rfc8785.dumps(value)


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def _unreadable(why: str) -> Refusal:
    return Refusal("unreadable-json", f"The body could not be read as JSON: {why}.")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _unreadable(f"the key {twice[:80]!r} occurs twice in one object")
    return document


def _refuse_constant(token: str) -> Any:
    raise _unreadable(f"{token} is not a JSON number")


def _read_int(token: str) -> int | float:
    if len(token) <= _SURELY_SAFE_DIGITS:  # nearly all: this is called for each number of a body
        return int(token)
    if len(token) <= _INTEGER_DIGITS_MAX and abs(value := int(token)) <= _SAFE_INTEGER:
        return value
    return float(token)


def _check(value: Any, text: str) -> None:
    if "\\u" in text:
        if not _encodable(value):
            raise _unreadable("a lone surrogate is not a character")
        if "\\u0000" in text and _has_nul(value):
            raise _unreadable("the character U+0000 cannot be kept")
    if text.count("[") + text.count("{") > _DEPTH_MAX and _depth(value) > _DEPTH_MAX:
        raise RecursionError


def _encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _has_nul(value: Any) -> bool:
    """As json.dumps spells it; a backslash of the text itself is spelled as two."""
    return "\\u0000" in json.dumps(value).replace("\\\\", "")


def _depth(value: Any) -> int:
    level, depth = [value], 1  # what is no container is not walked through: it is most of a body
    while level := [
        child
        for node in level
        for child in (node.values() if type(node) is dict else node)
        if type(child) is dict or type(child) is list
    ]:
        depth += 1
    return depth
