"""How long a request waits for the database: one bound for all that it asks of it together, handed down from where it
came in. What else it waits for, a provider or its client, has bounds of its own and is not counted."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

REQUEST_SECONDS = 5.0


class RequestBudget:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = REQUEST_SECONDS


_patience: ContextVar[RequestBudget | None] = ContextVar("patience", default=None)


def begin_request() -> None:
    """From now on this task, and what it starts, has REQUEST_SECONDS."""
    _patience.set(RequestBudget())


def renew() -> None:
    """The request has them anew: what a provider has said must be kept, and a long answer is read in many parts."""
    patience = _patience.get()
    if patience is not None:
        patience.left = REQUEST_SECONDS


def is_request() -> bool:
    return _patience.get() is not None


@contextmanager
def waiting(most: float) -> Iterator[float]:
    """Until when the caller may wait in the block, by the loop's clock; `most` is for whoever is no request."""
    now = asyncio.get_running_loop().time
    patience, began = _patience.get(), now()
    if patience is None:
        yield began + most
        return
    try:
        yield began + patience.left
    finally:
        patience.left -= now() - began


def shared_context() -> Context:
    """The context of work that many share, and whose end is none of the one's that began it."""
    context = copy_context()
    context.run(_patience.set, None)
    return context
