"""What becomes of a body on its way: each form that it may have had when it was signed. Pure.

What tells a form from the body at hand is worked out when somebody asks: most forms are tried in
vain, and to compare two texts of 200 kB takes longer than to sign both.
"""

from __future__ import annotations

import codecs
import json
import re
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Words = tuple[str, ...]
    Form = tuple[Callable[[], Words], bytes]  # tells what differs from the body at hand; the bytes

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]+")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\/")
_SPACINGS: tuple[dict[str, Any], ...] = (
    {"separators": (",", ":")},  # Tempa's own, and JavaScript's
    {},  # Python's
    {"indent": 2},
    {"indent": 4},
)
_MEMBERS = ("event", "type", "id", "timestamp", "data")
_OF_DATA = (
    *("job_id", "status", "model"),
    *("compute_time_ms", "artifacts"),
    *("error_code", "message", "retryable"),
)


def altered(body: bytes) -> Iterator[Form]:
    """Every form that it may have had, but for the one at hand. None comes twice."""
    seen = {body}
    for tell, form in _forms(body):
        if form not in seen:
            seen.add(form)
            yield tell, form


def _forms(body: bytes) -> Iterator[Form]:
    yield from _without_traces(body)
    yield from _with_traces(body)
    yield from _written_again(body)
    yield from _misread(body)


def _said(*words: str) -> Callable[[], Words]:
    return lambda: words


def _without_traces(body: bytes) -> Iterator[Form]:
    """Before an editor, Git or a transfer in text mode left its traces: any of them, or several."""
    for marked, broken, ended in product((False, True), repeat=3):
        words, form = [], body
        if marked:
            form = form.removeprefix(codecs.BOM_UTF8)
            words.append("A byte order mark (EF BB BF) stands before the body: an editor put it there.")
        if broken:
            form = form.replace(b"\r\n", b"\n")
            words.append("The line breaks became CRLF on the way.")
        if ended:
            form = form.rstrip(b"\r\n")
            words.append("The file ends in a line break that the delivery did not have.")
        yield _said(*words), form


def _with_traces(body: bytes) -> Iterator[Form]:
    """The other way round: the signature is over the traces."""
    more = _said("It is over a line break at the end that this body does not have.")
    yield more, body + b"\n"
    yield more, body + b"\r\n"
    in_crlf = body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    yield _said("It is over CRLF line breaks; those of this body are LF."), in_crlf
    marked = _said("It is over a byte order mark (EF BB BF) that this body does not have.")
    yield marked, codecs.BOM_UTF8 + body


def _written_again(body: bytes) -> Iterator[Form]:
    """As JSON libraries would write the same document."""
    try:
        text = body.decode("utf-8-sig")
        document = json.loads(text)
        documents = {json.dumps(one): one for one in _readings(document)}
    except (ValueError, RecursionError):
        return
    ways = product(documents.values(), _SPACINGS, (False, True), (False, True))
    for one, spacing, ascii_only, by_name in ways:
        written = json.dumps(one, ensure_ascii=ascii_only, sort_keys=by_name, **spacing)
        for form in (written, written.replace("/", "\\/"), _safe_in_html(written)):
            yield partial(_rewritten, text, form), form.encode(errors="surrogatepass")


def _rewritten(text: str, form: str) -> Words:
    differences = _differences(text, form)
    return (f"The body was parsed and written again ({differences}): sign and check the raw bytes.",)


def _readings(document: Any) -> tuple[Any, ...]:
    """As it stands, with its keys as Tempa has them, and with numbers as JavaScript has them."""
    return (document, _in_our_order(document), _in_whole_numbers(document))


def _misread(body: bytes) -> Iterator[Form]:
    empty = "It is over an empty body: something had read the request before it was signed or checked."
    yield _said(empty), b""
    named = "It is over an object's name: JavaScript turned the parsed body into text."
    yield _said(named), b"[object Object]"
    for read, written in (("utf-8", "latin-1"), ("latin-1", "utf-8")):
        try:
            form = body.decode(read).encode(written)
        except UnicodeError:
            continue
        yield _said(f"The body was read as {read} and written as {written}."), form


def _differences(text: str, other: str) -> str:
    """What tells two spellings of one document apart."""
    found = {
        "spaces": _spaces(text) != _spaces(other),
        "the order of keys": _ordered(text) != _ordered(other),
        "escapes such as \\u00f8": _ESCAPE.findall(text) != _ESCAPE.findall(other),
        "the spelling of numbers": sorted(_numbers(text)) != sorted(_numbers(other)),
    }
    return ", ".join(name for name, differs in found.items() if differs) or "its spelling"


def _spaces(text: str) -> int:
    return sum(map(len, _SPACE.findall(_STRING.sub('""', text))))


def _numbers(text: str) -> list[str]:
    return re.findall(r"[-+.0-9eE]+", re.sub(r"true|false|null", "", _STRING.sub('""', text)))


def _ordered(text: str) -> list[str]:
    """The keys as they come."""
    keys: list[str] = []
    json.loads(text, object_pairs_hook=lambda pairs: keys.extend(key for key, _ in pairs))
    return keys


def _in_our_order(document: Any) -> Any:
    """As Tempa writes it, should somebody have sorted the keys."""
    if not isinstance(document, dict):
        return document
    ordered = _moved_first(document, _MEMBERS)
    if isinstance(data := ordered.get("data"), dict):
        first = _moved_first(data, _OF_DATA)
        ordered["data"] = {key: first[key] for key in first if key != "tags"}
        ordered["data"] |= {"tags": data["tags"]} if "tags" in data else {}
    return ordered


def _moved_first(members: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: members[name] for name in names if name in members} | members


def _in_whole_numbers(document: Any) -> Any:
    """As JavaScript writes numbers: 1.0 is 1."""
    if isinstance(document, dict):
        return {key: _in_whole_numbers(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_in_whole_numbers(value) for value in document]
    return int(document) if isinstance(document, float) and document.is_integer() else document


def _safe_in_html(text: str) -> str:
    """As Go writes it."""
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text
