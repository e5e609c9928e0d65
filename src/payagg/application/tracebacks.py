"""What the log tells of a fault of ours."""

import traceback

TRACE_LINES_MAX = 100


def trace_of(error: BaseException) -> list[str]:
    """Types and frames of `error` and its causes, innermost last. Without messages and values: a driver's message
    repeats the row, customer and all."""
    lines: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(lines) < TRACE_LINES_MAX:
        frames = traceback.extract_tb(seen.__traceback__)
        lines.append(type(seen).__qualname__)
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        seen = seen.__cause__ or seen.__context__
    return lines[:TRACE_LINES_MAX]
