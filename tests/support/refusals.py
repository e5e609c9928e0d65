"""The refusal that a call ends with, for tests to look at."""

from collections.abc import Awaitable, Callable

import pytest

from payagg.domain.errors import ErrorCode, Refusal


def refusal_of(call: Callable[..., object], *arguments: object, **named: object) -> Refusal:
    """Of a function that must raise one."""
    with pytest.raises(Refusal) as refused:
        call(*arguments, **named)
    return refused.value


async def refusal_in(work: Awaitable[object]) -> Refusal:
    """Of work that must end with one."""
    with pytest.raises(Refusal) as refused:
        await work
    return refused.value


async def refused_with(work: Awaitable[object]) -> tuple[ErrorCode, str | None]:
    """Code and field of its refusal."""
    refused = await refusal_in(work)
    return refused.code, refused.field
