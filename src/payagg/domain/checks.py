"""Checks of single values, each refused under the input's JSON name, and copies of what was checked before.

Whatever is made from values of the outside is checked whole, in its `__post_init__`. Two ways lead around that, both
for what was checked when it came in: `restore` for a stored row, `with_changes` for a move of the domain's own. A rule
that is made stricter later must neither hide an old payment nor stop its money from settling. A new payment is checked
for what its caller gives, by `Payment.initiate`.
"""

import re
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

from payagg.domain.errors import invalid

T = TypeVar("T")
ID_MAX = 64
ID_PATTERN = "^[A-Za-z0-9_-]+$"
_ID = re.compile(ID_PATTERN.strip("^$"))


def check_text(value: Any, field: str, most: int, least: int = 0) -> None:
    """Raises VALIDATION_ERROR unless `value` is text of `least` to `most` characters that can be stored."""
    if not isinstance(value, str):
        raise invalid(field, "Must be a string.")
    if not least <= len(value) <= most:
        raise invalid(field, f"Must have {least} to {most} characters.")
    if not (value.isprintable() or is_storable(value)):  # what can be printed can be stored, and most can
        raise invalid(field, "Must not hold NUL or lone surrogates.")


def check_name(value: Any, most: int, least: int) -> None:
    """Raises VALIDATION_ERROR on `name` unless it is text of such a length that shows something in a list."""
    check_text(value, "name", most, least)
    if is_blank(value):
        raise invalid("name", "Must not be blank.")


def is_blank(text: str) -> bool:
    """Whether nothing of it shows: spaces, and what has no width, such as U+200B."""
    return not any(one.isprintable() and one != " " for one in text)


def check_integer(value: Any, field: str, low: int, high: int) -> None:
    """Raises VALIDATION_ERROR unless `value` is a true integer (neither a bool nor 100.0) in bounds."""
    if type(value) is not int:
        raise invalid(field, "Must be an integer.")
    if not low <= value <= high:
        raise invalid(field, f"Must be an integer from {low} to {high}.")


def check_flag(value: Any, field: str) -> None:
    if not isinstance(value, bool):
        raise invalid(field, "Must be true or false.")


def check_bytes(value: Any, field: str, length: int | None = None) -> None:
    """Raises VALIDATION_ERROR unless `value` is bytes, and of `length` where one is asked for."""
    if not isinstance(value, bytes) or (length is not None and len(value) != length):
        raise invalid(field, "Must be bytes." if length is None else f"Must be {length} bytes.")


def check_instant(value: Any, field: str) -> None:
    """Raises VALIDATION_ERROR unless `value` is a date and time with its zone."""
    if not isinstance(value, datetime) or value.utcoffset() is None:
        raise invalid(field, "Must be a date and time with a zone.")


def check_member(value: Any, field: str, kind: type[Enum]) -> None:
    if not isinstance(value, kind):
        raise invalid(field, f"Must be one of {', '.join(str(member.value) for member in kind)}.")


def check_id(value: Any, field: str) -> None:
    """Raises VALIDATION_ERROR unless `value` has the form of our own ids."""
    if not isinstance(value, str) or len(value) > ID_MAX or not _ID.fullmatch(value):
        raise invalid(field, f"Must be an id: 1 to {ID_MAX} of A-Z, a-z, 0-9, hyphen and underscore.")


def is_storable(text: str) -> bool:
    """Whether Postgres takes it: no NUL, and it can be written as UTF-8."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def restore(cls: type[T], fields: dict[str, Any]) -> T:
    """The object of such fields, made as `pickle` makes one: without `__init__`, and so without the checks. The object
    keeps `fields` as its own."""
    item = object.__new__(cls)
    object.__setattr__(item, "__dict__", fields)
    return item


def with_changes(item: T, **changes: Any) -> T:
    """A copy with `changes`, unchecked: for moves of the domain's own. `dataclasses.replace` checks the whole anew."""
    fields = item.__dict__.copy()
    fields.update(changes)
    return restore(type(item), fields)
