"""Spans of a trace. Without a tracer, the default, a span costs next to nothing."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

Opener = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
NO_ATTRIBUTES: Mapping[str, str] = {}
_NOTHING: AbstractContextManager[object] = nullcontext()


class _Tracer:
    opener: Opener | None = None


def trace_with(opener: Opener | None) -> None:
    """Sets what opens spans: `opener` gets a name and attributes; None = no spans."""
    _Tracer.opener = opener


def span(name: str, attributes: Mapping[str, str] = NO_ATTRIBUTES) -> AbstractContextManager[object]:
    """A span for the block. Attributes may hold no secret and nothing of a payer."""
    return _NOTHING if _Tracer.opener is None else _Tracer.opener(name, attributes)
