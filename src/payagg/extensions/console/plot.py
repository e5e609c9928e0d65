"""The geometry of a plot over days, in per cent of its box; a template draws it as SVG of any width.

A library that draws in the browser would be the page's heaviest part, and the table below it says the same.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

TOP, BOTTOM = 12, 88  # the days' names are below, the scale is above
GAP = 0.2  # of a day's width
TICKS = 4


def plot(days: Sequence[tuple[date, Mapping[str, int]]], before: Sequence[int]) -> dict[str, Any]:
    """A bar for each day with its values by status, oldest day and lowest status first, and a line through as many days
    `before`; no line when all of those are zero."""
    most = max(*(sum(values.values()) for _, values in days), *before) or 1
    step = 100 / len(days)
    return {
        "top": TOP,
        "bottom": BOTTOM,
        "most": most,
        "bars": [
            bar for number, (day, values) in enumerate(days) for bar in _stack(day, values, number * step, step, most)
        ],
        "line": [(_short((number + 0.5) * step), _height(value, most)) for number, value in enumerate(before)]
        if any(before)
        else [],
        "ticks": _ticks([day for day, _ in days], step),
    }


def _stack(day: date, values: Mapping[str, int], x: float, step: float, most: int) -> list[dict[str, Any]]:
    bars, below = [], 0
    for status, value in values.items():
        y = _height(below + value, most)
        size = {"width": _short(step * (1 - GAP)), "height": _short(_height(below, most) - y)}
        below += value
        if value:
            bars.append({"x": _short(x + step * GAP / 2), "y": y, **size, "status": status, "day": day, "value": value})
    return bars


def _height(value: int, most: int) -> float:
    return _short(BOTTOM - (BOTTOM - TOP) * value / most)


def _ticks(days: Sequence[date], step: float) -> list[tuple[float, str, date]]:
    """Which days are labelled, where, and how aligned: the first and last label stay in the box."""
    every = -(-len(days) // TICKS)
    middle = [
        (_short((number + 0.5) * step), "middle", days[number]) for number in range(every, len(days) - every, every)
    ]
    return [(0, "start", days[0]), *middle, (100, "end", days[-1])]


def _short(value: float) -> float:
    return round(value, 2)
