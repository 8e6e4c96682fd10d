"""The calls that settlement's bench makes are what it says: so many events, nine in ten known already."""

from __future__ import annotations

import json

from bench.settlement.hearing import ARRAY, DUPLICATES, _calls
from tempa.adapters.payments.helius import Helius


def test_nine_of_ten_events_are_known_and_every_signature_is_heard() -> None:
    bodies, expected = _calls(400, ARRAY, seed=1)
    heard = [Helius().hear(json.loads(body)) for body in bodies]

    assert {signature for one in heard for signature in one.signatures} == expected
    assert not any(one.rejected for one in heard)
    assert abs(len(expected) / (400 * ARRAY) - (1 - DUPLICATES)) < 0.01
