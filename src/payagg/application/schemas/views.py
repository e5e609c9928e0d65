"""Makes a response from the object that it shows."""

from typing import Any, TypeVar

from msgspec import Struct

View = TypeVar("View", bound=Struct)


def view_of(kind: type[View], source: object, **others: Any) -> View:
    """`kind` with the source's values of the same names, but for `others`."""
    names = kind.__struct_fields__
    return kind(**{name: others[name] if name in others else getattr(source, name) for name in names})
