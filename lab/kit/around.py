"""Something of ours before and after each call of a method."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any


def around(
    owner: Any, method: str, *, before: Callable[[], None] = lambda: None, after: Callable[[Any], None] = lambda _: None
) -> None:
    """Of one object, or of every object of a class. `after` is given the answer."""
    own = getattr(owner, method)

    @wraps(own)
    def called(*given: Any, **named: Any) -> Any:
        before()
        answer = own(*given, **named)
        after(answer)
        return answer

    @wraps(own)
    async def awaited(*given: Any, **named: Any) -> Any:
        before()
        answer = await own(*given, **named)
        after(answer)
        return answer

    setattr(owner, method, awaited if inspect.iscoroutinefunction(own) else called)
