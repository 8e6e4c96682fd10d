"""Which of the known mistakes made this signature? Tried out, one after the other. Pure.

A signature says nothing of how it was made, but there are not many ways to make it wrongly: these
bytes of the body or those, this reading of the secret or that, with the time or without. Each way
is tried; the one that gives the signature at hand, with the fewest mistakes, is the answer.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tempa.cli.rewritings import altered
from tempa.core.signing import SECRET_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tempa.cli.rewritings import Words

Scheme = Literal["v1", "hex"]  # an entry of webhook-signature, or X-Webhook-Signature

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_LABEL = re.compile(r"(?:sha256|hmac-sha256|v1|v0)=", re.IGNORECASE)
_DIGEST_BYTES = 32
_THOROUGH_BYTES_MAX = 16_384


@dataclass(frozen=True, slots=True)
class Delivery:
    """What was signed, as it is at hand. Id and time are None where they did not come along."""

    body: bytes
    message_id: str | None
    timestamp: str | None


def mistakes(
    signature: str, delivery: Delivery, secrets: Sequence[str], schemes: Sequence[Scheme]
) -> Words | None:
    """What was done wrong when this signature was made, in words: () if nothing, None if nobody knows."""
    for tries in (_by_key_and_content, _by_body, _by_all):
        found = [
            (*words, *spelt)
            for scheme in schemes
            for spelt, digest in _spellings(signature, scheme)
            for words in tries(delivery, secrets, scheme, digest)
        ]
        if found:
            return min(found, key=len)
    return None


def _by_key_and_content(
    delivery: Delivery, secrets: Sequence[str], scheme: Scheme, digest: bytes
) -> Iterator[Words]:
    """The body is right; the secret was read in another way, or more or less was signed."""
    for of_content, message in _contents(delivery, delivery.body, scheme):
        for of_key, key in _keys(secrets, scheme):
            if _makes(key, message, digest):
                yield (*of_content, *of_key)


def _by_body(delivery: Delivery, secrets: Sequence[str], scheme: Scheme, digest: bytes) -> Iterator[Words]:
    """Secret and content are right, and the body was another."""
    keys = [key for words, key in _keys(secrets, scheme) if not words]
    for tell, body in altered(delivery.body):
        messages = [message for words, message in _contents(delivery, body, scheme) if not words]
        if any(_makes(key, message, digest) for key in keys for message in messages):
            yield tell()


def _by_all(delivery: Delivery, secrets: Sequence[str], scheme: Scheme, digest: bytes) -> Iterator[Words]:
    """Any of it at once: thousands of signatures, which take seconds for a large body."""
    if len(delivery.body) > _THOROUGH_BYTES_MAX:
        return
    keys = list(_keys(secrets, scheme))
    for tell, body in altered(delivery.body):
        for of_content, message in _contents(delivery, body, scheme):
            for of_key, key in keys:
                if _makes(key, message, digest):
                    yield (*tell(), *of_content, *of_key)


def _makes(key: bytes, message: bytes, digest: bytes) -> bool:
    return hmac.compare_digest(hmac.digest(key, message, hashlib.sha256), digest)


def _contents(delivery: Delivery, body: bytes, scheme: Scheme) -> Iterator[tuple[Words, bytes]]:
    alone = "It is over the body alone: webhook-signature is over `id.timestamp.body`."
    yield (alone,) if scheme == "v1" else (), body
    if delivery.message_id is None or delivery.timestamp is None:
        return
    message_id = delivery.message_id.encode(errors="replace")
    timestamp = delivery.timestamp.encode(errors="replace")
    whole = "It is over `id.timestamp.body`: X-Webhook-Signature is over the body alone."
    yield () if scheme == "v1" else (whole,), b".".join([message_id, timestamp, body])
    yield ("webhook-id is missing from what was signed: `id.timestamp.body`.",), timestamp + b"." + body
    yield (
        ("webhook-timestamp is missing from what was signed: `id.timestamp.body`.",),
        message_id + b"." + body,
    )
    undotted = "Dots belong between the parts of what is signed: `id.timestamp.body`."
    yield (undotted,), message_id + timestamp + body


def _keys(secrets: Sequence[str], scheme: Scheme) -> Iterator[tuple[Words, bytes]]:
    for secret in secrets:
        yield from _keys_in(secret, scheme)


def _keys_in(secret: str, scheme: Scheme) -> Iterator[tuple[Words, bytes]]:
    yield from _readings(secret, scheme)
    plain = secret.strip().strip("\"'").strip()
    if plain != secret:
        around = "There is white space around the secret, or quotation marks."
        yield from (((around, *words), key) for words, key in _readings(plain, scheme))
    yield ("The secret was read with the line break at its end.",), secret.encode(errors="replace") + b"\n"


def _readings(secret: str, scheme: Scheme) -> Iterator[tuple[Words, bytes]]:
    """The key that a scheme makes of a secret, and those that were taken for it."""
    rest = secret.removeprefix(SECRET_PREFIX)
    whole, text = secret.encode(errors="replace"), rest.encode(errors="replace")
    decoded = _lenient(rest)
    if scheme == "hex":
        yield (), whole
        yield (_HEX_KEY + "here whsec_ was taken off.",), text
        yield (_HEX_KEY + "here it was decoded from base64.",), decoded
        return
    yield (), decoded
    yield (_V1_KEY + "here the secret was taken as text, whsec_ included.",), whole
    yield (_V1_KEY + "here it was taken as text.",), text
    for taken in (_lenient(secret), _lenient(secret.replace("_", ""))):  # as Node reads it, and as Python
        yield (_V1_KEY + "here whsec_ was decoded along with it.",), taken


_V1_KEY = "The key of webhook-signature is what follows whsec_, decoded from base64: "
_HEX_KEY = "The key of X-Webhook-Signature is the whole secret as text, whsec_ included: "


def _spellings(signature: str, scheme: Scheme) -> Iterator[tuple[Words, bytes]]:
    """The digest that a text spells, with what is wrong in how it does."""
    text = signature.strip()
    label = _LABEL.match(text)
    wrong = (f"`{label[0]}` does not belong there.",) if label else ()
    text = text.removeprefix(label[0] if label else "v1,")
    if _HEX.fullmatch(text):
        in_hex = "It is spelt in hex; webhook-signature is base64."
        yield (*wrong, in_hex) if scheme == "v1" else wrong, bytes.fromhex(text)
        return
    digest, in_base64 = _lenient(text), "It is spelt in base64; X-Webhook-Signature is hex."
    if len(digest) == _DIGEST_BYTES:
        strict = base64.b64encode(digest).decode() == text
        loose = () if strict else ("It is spelt in URL-safe or unpadded base64.",)
        yield (*wrong, in_base64) if scheme == "hex" else (*wrong, *loose), digest
    elif _HEX.fullmatch(spelt := digest.decode("latin-1")):
        yield (*wrong, "It is the base64 of the hex text, not of the bytes."), bytes.fromhex(spelt)


def _lenient(text: str) -> bytes:
    """As Node reads base64: URL-safe or not, padded or not, without a letter too many. Else empty."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    plain = plain[:-1] if len(plain) % 4 == 1 else plain
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except ValueError:
        return b""
