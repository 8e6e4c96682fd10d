"""Addresses of associated token accounts against the reference implementation."""

from __future__ import annotations

import random

import pytest
from solders.pubkey import Pubkey

from tempa.settlement.derive import associated_account, is_on_curve
from tempa.settlement.transfers import TOKEN, TOKEN_2022
from tempa.testing.devchain import programs

_PRIME = 2**255 - 19


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
def test_derived_as_the_reference_does(program: str) -> None:
    dice = random.Random(3)
    for _ in range(100):
        owner, mint = Pubkey(dice.randbytes(32)), Pubkey(dice.randbytes(32))
        expected = programs.associated_account(owner, mint, Pubkey.from_string(program))

        assert associated_account(str(owner), str(mint), program) == str(expected)


def test_points_of_the_curve_are_those_of_the_reference() -> None:
    dice = random.Random(4)
    edges = [0, 1, _PRIME - 1, _PRIME, _PRIME + 1, 2**255 - 1, 2**255 + 1, 2**256 - 1]
    keys = [number.to_bytes(32, "little") for number in edges] + [dice.randbytes(32) for _ in range(500)]
    for key in keys:
        assert is_on_curve(key) == Pubkey(key).is_on_curve(), key.hex()
