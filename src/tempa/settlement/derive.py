"""Where a wallet keeps a token unless told otherwise: its associated token account. By hashing alone."""

from __future__ import annotations

from hashlib import sha256

from tempa.core import base58

ASSOCIATED_TOKEN = "ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL"  # noqa: S105 - the program's address
_MARKER = b"ProgramDerivedAddress"
_FIELD = 2**255 - 19
_D = -121665 * pow(121666, -1, _FIELD) % _FIELD  # of the curve -x**2 + y**2 = 1 + d * x**2 * y**2


def associated_account(owner: str, mint: str, program: str) -> str:
    """The address at which `owner` keeps `mint`, of the token program `program`.

    The first hash, counting a byte down from 255, that is no point of the curve: nobody can have its key.
    """
    seeds = b"".join(base58.decode(part) for part in (owner, program, mint))
    for bump in range(255, -1, -1):
        address = sha256(seeds + bytes([bump]) + base58.decode(ASSOCIATED_TOKEN) + _MARKER).digest()
        if not is_on_curve(address):
            return base58.encode(address)
    raise ValueError("no address can be derived")  # once in 2**256


def is_on_curve(key: bytes) -> bool:
    """Whether 32 bytes are a point of edwards25519 in its compressed form: whether they can have a key."""
    y = int.from_bytes(key, "little") & (2**255 - 1)  # the top bit is the sign of x
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _FIELD) % _FIELD
    return square == 0 or pow(square, (_FIELD - 1) // 2, _FIELD) == 1
