"""Identifiers: prefixed, time-ordered, unguessable (docs/decisions/0005)."""

from __future__ import annotations

import os
import re
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
_RANDOM_BITS = 80
_LENGTH = 26  # ceil((48 + 80) / 5)
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]  # of digits: half as many steps
_SHIFTS = range(5 * _LENGTH - 10, -1, -10)
_PATTERN = re.compile(rf"[a-z]{{2,6}}_[{_ALPHABET}]{{{_LENGTH}}}")

_POOL_BYTES = 4096  # of the system's random bytes at a time: a call for each id takes half as long as the id

_lock = threading.Lock()
_last = 0
_pool = b""
_used = 0


def _start_anew() -> None:
    """In a forked child: the pool is its parent's, and so is the lock, which a thread there may hold."""
    global _lock, _pool, _used
    _lock, _pool, _used = threading.Lock(), b"", 0


os.register_at_fork(after_in_child=_start_anew)


def new_id(prefix: str) -> str:
    """A new id such as `cad_06b3…`: 48 bits of Unix milliseconds, then 80 random bits.

    Within one process ids never go back: in the same millisecond the next one lies a random
    step of up to 2**72 further on, so a neighbour's id still cannot be guessed.
    """
    global _last  # noqa: PLW0603 - the order of ids is a property of the process
    with _lock:
        fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | _random(_RANDOM_BITS // 8)
        _last = fresh if fresh > _last else _last + 1 + _random(9)
        value = _last
    pairs = [_PAIRS[value >> shift & 1023] for shift in _SHIFTS]
    return f"{prefix}_{''.join(pairs)}"


def _random(size_bytes: int) -> int:
    """Bytes of the system that nobody else was given. Behind the lock."""
    global _pool, _used
    if len(_pool) - _used < size_bytes:
        _pool, _used = os.urandom(_POOL_BYTES), 0
    start, _used = _used, _used + size_bytes
    return int.from_bytes(_pool[start:_used])


def is_id(text: str, *prefixes: str) -> bool:
    """Whether `text` has the form of an id (with one of `prefixes`, if any are given)."""
    if _PATTERN.fullmatch(text) is None:
        return False
    return not prefixes or text.partition("_")[0] in prefixes
