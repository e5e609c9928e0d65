"""The cost of each step as a picture: plain SVG, one bar for each checkout, a line where the target is."""

from collections.abc import Mapping
from html import escape
from typing import Any

LABEL, SCALE, WIDTH = 150, 90, 900  # px: names, one ms, the whole
BAR, GAP = 11, 9
SERVER = {"payagg": "#2563a8", "against": "#a3a3a3"}
POSTGRES = {"payagg": "#8db8e2", "against": "#d4d4d4"}


def picture(figures: Mapping[str, Any], targets: Mapping[str, tuple[float, float | None]]) -> str:
    """`figures` by side and step; a bar that would leave the picture is cut, and its number says how long it is."""
    y, parts = 34, [_text(8, 20, "ms of CPU for one request: server, then Postgres; the line is the server's target")]
    for step in figures["payagg"]:
        parts.append(_text(LABEL - 8, y + BAR - 1, step, "end"))
        top = y
        for side, steps in figures.items():
            own = steps[step]
            server, postgres = own["server_ms"], own["postgres_ms"]
            parts.append(_bar(LABEL, y, server, SERVER[side]))
            parts.append(_bar(LABEL + server * SCALE, y, postgres, POSTGRES[side]))
            end = min(LABEL + (server + postgres) * SCALE, WIDTH - 110)
            parts.append(_text(end + 6, y + BAR - 1, f"{server:.2f} + {postgres:.2f}"))
            y += BAR + 2
        if step in targets:
            x = min(LABEL + targets[step][0] * SCALE, WIDTH - 112)
            parts.append(f'<path d="M{x:.1f} {top - 3}V{y + 1}" stroke="#c02626" stroke-width="2"/>')
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
        'font-family="system-ui, sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>', *parts, "</svg>", ""])


def _bar(x: float, y: float, ms: float, colour: str) -> str:
    width = max(0.0, min(ms * SCALE, WIDTH - 110 - x))
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
