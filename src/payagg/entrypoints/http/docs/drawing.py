"""A state machine as a picture: Mermaid's state diagrams, as docs/states.md has them, to SVG without a script.

Mermaid draws in a browser alone, with 3 MB of script. Our machines have at most five states, so rows by the longest way
from the first state are enough.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, ACROSS, DOWN, MARGIN = 150, 36, 190, 120, 60
_LINE = re.compile(r"^\s*(\S+) --> ([^:\s]+)(?:: (.+))?$", re.MULTILINE)


@dataclass(frozen=True)
class _Box:
    """The middle of a state's box."""

    x: float
    y: float


def draw(diagram: str) -> str | None:
    """None for what is no state diagram."""
    if not diagram.startswith("stateDiagram"):
        return None
    arrows: dict[tuple[str, str], list[str]] = defaultdict(list)
    for start, end, label in _LINE.findall(diagram):
        arrows[start, end].append(label)
    first = next(end for start, end in arrows if start == "[*]")
    finals = {start for start, end in arrows if end == "[*]"}
    moves = {pair: labels for pair, labels in arrows.items() if "[*]" not in pair}
    boxes, width, height = _place_states(first, list(moves))
    tip = f"url(#tip-{first})"
    parts = [_arrow(boxes[start], boxes[end], ", ".join(labels), tip) for (start, end), labels in moves.items()]
    parts += [_state(name, box, is_final=name in finals) for name, box in boxes.items()]
    words = "; ".join(f"{start} to {end} by {' or '.join(labels)}" for (start, end), labels in moves.items())
    return (
        '<div class="drawing" tabindex="0">'
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{escape(words)}">'
        f'<defs><marker id="tip-{first}" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z"/></marker></defs>{"".join(parts)}</svg></div>'
    )


def _place_states(first: str, pairs: list[tuple[str, str]]) -> tuple[dict[str, _Box], int, int]:
    """Where each state stands, and the size of the whole."""
    rows: dict[int, list[str]] = defaultdict(list)
    for name in dict.fromkeys(name for pair in pairs for name in pair):
        rows[_longest(first, name, pairs, frozenset())].append(name)
    across = max(len(names) for names in rows.values())
    width = max(across, 2) * ACROSS + 2 * MARGIN
    boxes = {
        name: _Box(width / 2 + (place - (len(names) - 1) / 2) * ACROSS, MARGIN / 2 + HEIGHT / 2 + row * DOWN)
        for row, names in rows.items()
        for place, name in enumerate(names)
    }
    return boxes, width, MARGIN + HEIGHT + max(rows) * DOWN


def _longest(here: str, to: str, pairs: list[tuple[str, str]], seen: frozenset[str]) -> int:
    """Moves on the longest way that meets no state twice; far below zero where there is none."""
    if here == to:
        return 0
    onwards = [end for start, end in pairs if start == here and end not in seen | {here}]
    return max((1 + _longest(end, to, pairs, seen | {here}) for end in onwards), default=-99)


def _state(name: str, box: _Box, *, is_final: bool) -> str:
    x, y = box.x - WIDTH / 2, box.y - HEIGHT / 2
    kind = "state final" if is_final else "state"
    return (
        f'<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
        f'<text x="{box.x}" y="{box.y + 5}" text-anchor="middle">{escape(name)}</text>'
    )


def _arrow(start: _Box, end: _Box, label: str, tip: str) -> str:
    if start == end:
        x, y = start.x - WIDTH / 2, start.y
        path, at = f"M{x} {y - 8}C{x - 40} {y - 24} {x - 40} {y + 24} {x} {y + 8}", (x - 34, y + 4, "end")
    elif start.y == end.y:
        way = 1 if end.x > start.x else -1
        x1, x2 = start.x + way * WIDTH / 2, end.x - way * WIDTH / 2
        path, at = f"M{x1} {start.y}L{x2} {end.y}", ((x1 + x2) / 2, start.y - 8, "middle")
    else:
        way = 1 if end.y > start.y else -1
        y1, y2 = start.y + way * HEIGHT / 2, end.y - way * HEIGHT / 2
        # What passes a row or goes back bends aside, so that it crosses no box and no arrow the other way.
        is_long, is_upright = abs(end.y - start.y) > DOWN, start.x == end.x
        aside = (240 if is_upright else 150) if is_long else 60 if way < 0 else 0
        aside *= -1 if way > 0 and end.x < start.x else 1
        (x1, x2), (x, y) = (start.x + aside / 4, end.x + aside / 4), ((start.x + end.x) / 2 + aside, (y1 + y2) / 2)
        path = f"M{x1} {y1}Q{x} {y} {x2} {y2}"
        part = 0.7 if is_long and not is_upright else 0.5  # of the way: labels of one row stand apart
        points = ((x1, x, x2), (y1, y, y2))
        along = [(1 - part) ** 2 * p + 2 * part * (1 - part) * q + part**2 * r for p, q, r in points]
        at = (along[0], along[1] + 4, "middle")
    return (
        f'<path class="arrow" d="{path}" marker-end="{tip}"/>'
        f'<text class="label" x="{at[0]}" y="{at[1]}" text-anchor="{at[2]}">{escape(label)}</text>'
    )
