"""How long a request waits for the database: one bound for all its statements, set where the request enters. Waits for
a provider or a client have bounds of their own and do not count."""

import asyncio
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


class Waiting:
    """Until when the caller may wait in the block, by the loop's clock; `most` seconds is the bound outside a request.
    A context manager made of a generator takes twice as long, and each request enters several."""

    __slots__ = ("_began", "_budget", "_most", "_now")

    def __init__(self, most: float) -> None:
        self._most = most

    def __enter__(self) -> float:
        self._now = asyncio.get_running_loop().time
        self._began, self._budget = self._now(), _patience.get()
        return self._began + (self._most if self._budget is None else self._budget.left)

    def __exit__(self, *_: object) -> None:
        if self._budget is not None:
            self._budget.left -= self._now() - self._began


def shared_context() -> Context:
    """A context for work that several requests share: the deadline of the one that started it does not apply."""
    context = copy_context()
    context.run(_patience.set, None)
    return context
