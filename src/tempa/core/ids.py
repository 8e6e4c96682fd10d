"""Identifiers: prefixed, time-ordered, unguessable (docs/decisions/0005)."""

from __future__ import annotations

import re
import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM_BITS = 80
_LENGTH = 26  # ceil((48 + 80) / 5)
_PATTERN = re.compile(rf"[a-z]{{2,6}}_[{_ALPHABET}]{{{_LENGTH}}}")

_lock = threading.Lock()
_last = 0


def new_id(prefix: str) -> str:
    """A new id such as `cad_06b3…`: 48 bits of Unix milliseconds, then 80 random bits.

    Within one process ids never go back: in the same millisecond the next one lies a random
    step of up to 2**72 further on, so a neighbour's id still cannot be guessed.
    """
    global _last  # noqa: PLW0603 - the order of ids is a property of the process
    with _lock:
        fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
        _last = fresh if fresh > _last else _last + 1 + secrets.randbits(72)
        value = _last
    digits = []
    for _ in range(_LENGTH):
        value, digit = divmod(value, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}_{''.join(reversed(digits))}"


def is_id(text: str, *prefixes: str) -> bool:
    """Whether `text` has the form of an id (with one of `prefixes`, if any are given)."""
    if _PATTERN.fullmatch(text) is None:
        return False
    return not prefixes or text.partition("_")[0] in prefixes
