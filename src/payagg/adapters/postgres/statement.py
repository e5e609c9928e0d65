"""A statement in SQL."""

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
_NAME = re.compile(r"(?<![:\w\\]):(\w+)")
_LOCK = re.compile(rb"\bFOR (UPDATE|SHARE|NO KEY|KEY)")
_WRITTEN = re.compile(r"CAST\(:(\w+) AS (timestamptz|jsonb)\)", re.IGNORECASE)


def must_find(changed: str, **before: str) -> "Statement":
    """Fails when `changed`, which writes with RETURNING, finds no row: a division by zero rolls its transaction back,
    so COMMIT can be sent with it. `before`: clauses that `changed` names."""
    clauses = "".join(f"{name} AS ({clause}), " for name, clause in before.items())
    return Statement(f"WITH {clauses}found AS ({changed}) SELECT 1 / count(*) FROM found")  # noqa: S608 - our own words


class Statement:
    """SQL with `:name` for its parameters, CAST where the server cannot tell a type, and `\\:` for a colon.

    A value that is CAST as timestamptz or jsonb is written here: the driver writes an instant in ten times the
    instructions. A text that is CAST as jsonb is JSON already.

    `reads`: it neither writes nor locks, so that a transaction need not have begun for it: at READ COMMITTED each
    statement sees a snapshot of its own anyway. Told of a SELECT without a lock; `reads=True` says so of others.
    """

    def __init__(self, query: str, *, reads: bool = False) -> None:
        self._names = list(dict.fromkeys(_NAME.findall(query)))
        numbers = {name: number for number, name in enumerate(self._names, 1)}
        self.sql = _NAME.sub(lambda found: f"${numbers[found[1]]}", query).replace("\\:", ":").encode()
        self._writers = [(numbers[name] - 1, _WRITERS[kind.lower()]) for name, kind in set(_WRITTEN.findall(query))]
        self.reads = reads or (self.sql.lstrip().startswith(b"SELECT") and not _LOCK.search(self.sql))
        # Of its span. Values are not in it, as all of them are parameters.
        self.attributes = {"db.system.name": "postgresql", "db.query.text": self.sql.decode()}

    def order_values(self, values: Mapping[str, Any]) -> list[Any]:
        """The values in the order of $1, $2 ...; raises KeyError for one that is missing."""
        ordered = [values[name] for name in self._names]
        for place, write in self._writers:
            ordered[place] = write(ordered[place])
        return ordered


def _instant(at: Any) -> str | None:
    return None if at is None else _encode(at)[1:-1].decode()


def _json(value: Any) -> str | None:
    # What is frozen has read-only mappings. Not msgspec's: a sum may have more digits than 64 bits.
    return value if value is None or isinstance(value, str) else json.dumps(value, default=dict)


_WRITERS = {"timestamptz": _instant, "jsonb": _json}
