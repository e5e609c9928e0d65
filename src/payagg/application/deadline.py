"""How long a request waits for the database: one bound for all its statements, set where the request enters. Waits for
a provider or a client have bounds of their own and do not count."""

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
    """From now on this task, and the tasks it starts, have REQUEST_SECONDS."""
    _patience.set(RequestBudget())


def renew() -> None:
    """Starts the bound again: a provider's answer must be stored, and a long export reads many parts."""
    patience = _patience.get()
    if patience is not None:
        patience.left = REQUEST_SECONDS


def budget_of_request() -> RequestBudget | None:
    """What the request that this task belongs to has left; None where it belongs to none."""
    return _patience.get()


@contextmanager
def waiting(most: float) -> Iterator[float]:
    """Until when the caller may wait in the block, by the loop's clock; outside a request for `most` seconds."""
    clock = asyncio.get_running_loop().time
    began, budget = clock(), _patience.get()
    try:
        yield began + (most if budget is None else budget.left)
    finally:
        if budget is not None:
            budget.left -= clock() - began


def shared_context() -> Context:
    """A context for work that several requests share: the deadline of the one that started it does not apply."""
    context = copy_context()
    context.run(_patience.set, None)
    return context
