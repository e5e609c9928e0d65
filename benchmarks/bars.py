"""The cost of each step as a picture: plain SVG, one bar for each checkout, a line where the target is."""

from collections.abc import Mapping
from html import escape
from typing import Any

LABEL, NUMBERS, WIDTH = 150, 110, 900  # px: names before a bar, numbers behind it, the whole
BAR, GAP, HEAD = 11, 9, 34
SERVER = {"payagg": "#2563a8", "against": "#8a8a8a"}
POSTGRES = {"payagg": "#8db8e2", "against": "#d0d0d0"}


def picture(figures: Mapping[str, Any], targets: Mapping[str, tuple[float, float | None]]) -> str:
    """`figures` by side and step; the longest bar fills the picture."""
    most = max(own["server_ms"] + own["postgres_ms"] for steps in figures.values() for own in steps.values())
    scale = (WIDTH - LABEL - NUMBERS) / max(most, *(server for server, _ in targets.values()))
    parts = [_text(8, 20, "ms of CPU for one request: server, then Postgres; the line is the server's target")]
    y = HEAD
    for step in figures["payagg"]:
        parts.append(_text(LABEL - 8, y + BAR - 1, step, "end"))
        top = y
        for side, steps in figures.items():
            server, postgres = steps[step]["server_ms"], steps[step]["postgres_ms"]
            parts.append(_bar(LABEL, y, server * scale, SERVER[side]))
            parts.append(_bar(LABEL + server * scale, y, postgres * scale, POSTGRES[side]))
            end = LABEL + (server + postgres) * scale
            parts.append(_text(end + 6, y + BAR - 1, f"{server:.2f} + {postgres:.2f}"))
            y += BAR + 2
        if step in targets:
            x = LABEL + targets[step][0] * scale
            parts.append(f'<path d="M{x:.1f} {top - 3}V{y + 1}" stroke="#c02626" stroke-width="2"/>')
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" '
        'font-family="system-ui, sans-serif" font-size="12">'
    )
    return "\n".join([head, f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>', *parts, "</svg>", ""])


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
