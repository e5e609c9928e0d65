"""Makes a response from the object that it shows; the form of ids."""

import re
from typing import Any, TypeVar

from msgspec import Meta, Struct

from payagg.domain.errors import invalid

View = TypeVar("View", bound=Struct)


def view_of(kind: type[View], source: object, **others: Any) -> View:
    """`kind` with the source's values of the same names, but for `others`."""
    names = kind.__struct_fields__
    return kind(**{name: others[name] if name in others else getattr(source, name) for name in names})


def id_form(prefix: str, examples: list[str] | None = None) -> Meta:
    """What ids with this prefix look like (see Entropy.id)."""
    return Meta(min_length=36, max_length=36, pattern=f"^{prefix}_[0-9a-f]{{32}}$", examples=examples)


def check_after(after: str | None, prefix: str, what: str) -> None:
    """Raises VALIDATION_ERROR on `after` for a cursor that is no id with this prefix; `what` says which id it is."""
    if after is not None and not re.fullmatch(f"{prefix}_[0-9a-f]{{32}}", after):
        raise invalid("after", f"Must be {what}.")
