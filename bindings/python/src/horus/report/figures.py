# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them: units, signs, intervals."""

from __future__ import annotations

import math

MINUS = "\u2212"
UNITS_OF_TIME = ((86_400.0, "days"), (3_600.0, "h"), (60.0, "min"))


def number(value: float | None, digits: int = 3) -> str:
    """With so many significant digits, thousands apart; a dash for none."""
    if value is None or not math.isfinite(value):
        return "\u2013"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{abs(value):,.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return (MINUS if value < 0 else "") + text


def signed(value: float | None, places: int = 1) -> str:
    if value is None:
        return "\u2013"
    text = f"{abs(value):,.{places}f}"
    if float(text.replace(",", "")) == 0:
        return text
    return (MINUS if value < 0 else "+") + text


def span(low: float | None, high: float | None, unit: str = "%") -> str:
    """An interval; says so where there is none."""
    if low is None or high is None:
        return "one seed, no interval"
    return f"{signed(low)} to {signed(high)}\u00a0{unit}"


def seconds(value: float | None) -> str:
    if value is None:
        return "\u2013"
    for size, unit in UNITS_OF_TIME:
        if abs(value) >= 3 * size:
            return f"{number(value / size)}\u00a0{unit}"
    return f"{number(value)}\u00a0s"


def of_metric(name: str, value: float | None) -> str:
    """A column of results.csv."""
    if value is None:
        return "\u2013"
    if name.endswith("_s"):
        return seconds(value)
    return f"{number(value)}\u00a0%" if name.endswith("_pct") else number(value)


def bound(value: float | None) -> str:
    return "no bound" if value is None else f"{value:g}\u00d7"
