"""Makes a response from the object that it shows; the form of ids, and pages of lists."""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, TypeVar

from msgspec import Meta, Struct

from payagg.domain.errors import invalid


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


View = TypeVar("View", bound=Struct)
Row = TypeVar("Row", bound=_HasId)
PAGE_DEFAULT, PAGE_MAX = 50, 100  # rows of a page for administrators


def view_of(kind: type[View], source: object, **others: Any) -> View:
    """`kind` with the source's values of the same names, but for `others`."""
    names = kind.__struct_fields__
    return kind(**{name: others[name] if name in others else getattr(source, name) for name in names})


def page_of(found: Sequence[Row], limit: int, after: str | None = None) -> tuple[Sequence[Row], str | None, bool]:
    """The rows of a page, the cursor of the next one, and whether it has rows. `found` has one row more than `limit` if
    there is one. `after` is the cursor of an empty page: none where somebody may go on until there is none."""
    shown = found[:limit]
    return shown, shown[-1].id if shown else after, len(found) > limit


def id_form(prefix: str, examples: list[str] | None = None) -> Meta:
    """What ids with this prefix look like (see Entropy.id)."""
    return Meta(min_length=36, max_length=36, pattern=f"^{prefix}_[0-9a-f]{{32}}$", examples=examples)


AnomalyId = Annotated[str, id_form("anm", ["anm_0194bb8f3c0000000000000000000001"])]


def check_after(after: str | None, prefix: str, what: str) -> None:
    """Raises VALIDATION_ERROR on `after` for a cursor that is no id with this prefix; `what` says which id it is."""
    if after is not None and not re.fullmatch(f"{prefix}_[0-9a-f]{{32}}", after):
        raise invalid("after", f"Must be {what}.")
