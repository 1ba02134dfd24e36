"""Writes shares and factors in words."""

from __future__ import annotations


def three_digits(value: float) -> str:
    """Return a number with three digits or more, never with an exponent: "0.498", "1.50", "302", "1,200"."""
    return f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:,.0f}"


def percent(share: float) -> str:
    """Return a share in per cent: 0.24 as "24 %", and less than one per cent as "0.3 %"."""
    value = 100 * share
    return f"{value:.1f} %" if 0.05 <= value < 0.95 else f"{value:.0f} %"
