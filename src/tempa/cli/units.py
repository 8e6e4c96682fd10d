"""Amounts as people write them: base units on the wire, user units on the screen."""

from __future__ import annotations

from decimal import Decimal


def in_user_units(amount: str, decimals: int) -> str:
    """Base units as a plain decimal number, exactly: "1800000" of 6 decimals is "1.8"."""
    shown = format(Decimal(int(amount)).scaleb(-decimals), "f")
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
