"""The geometry of the overview's plot, in units of its view box; a template draws it as SVG.

A library that draws in the browser would be the page's heaviest part, and the table beside it says the same.
"""

from collections.abc import Mapping, Sequence
from typing import Any

WIDTH, HEIGHT = 300, 140
TOP, BASE = 14, 120
GAP = 0.2  # of a day's width
TICKS = 4


def plot(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`rows`: `day` and `counts` by status, oldest first."""
    most = max((sum(row["counts"].values()) for row in rows), default=0) or 1
    step = WIDTH / max(len(rows), 1)
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "base": BASE,
        "most": most,
        "bars": [bar for number, row in enumerate(rows) for bar in _stacked(row, number * step, step, most)],
        "ticks": _ticks(rows, step),
    }


def _stacked(row: Mapping[str, Any], x: float, step: float, most: int) -> list[dict[str, Any]]:
    bars, y = [], float(BASE)
    for status, count in row["counts"].items():
        if not count:
            continue
        height = (BASE - TOP) * count / most
        y -= height
        says = f"{row['day']}: {count} {status.lower()}"
        place = {"x": _short(x + step * GAP / 2), "y": _short(y)}
        bars.append(
            {**place, "width": _short(step * (1 - GAP)), "height": _short(height), "status": status, "says": says}
        )
    return bars


def _ticks(rows: Sequence[Mapping[str, Any]], step: float) -> list[dict[str, Any]]:
    """The days that have their name under the plot, the last one at its right end."""
    every = -(-len(rows) // TICKS)
    shown = range(0, len(rows) - every // 2 - 1, every) if rows else ()
    ticks = [{"x": _short(number * step), "says": str(rows[number]["day"])[5:], "is_last": False} for number in shown]
    return [*ticks, {"x": WIDTH, "says": str(rows[-1]["day"])[5:], "is_last": True}] if rows else []


def _short(value: float) -> float:
    return round(value, 1)
