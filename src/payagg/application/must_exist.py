"""Refuses a request that names what does not exist."""

from typing import TypeVar

from payagg.domain.errors import ErrorCode, Refusal

T = TypeVar("T")


def must_exist(one: T | None, message: str | None = None) -> T:
    """Raises NOT_FOUND for None."""
    if one is None:
        raise Refusal(ErrorCode.NOT_FOUND, message)
    return one
