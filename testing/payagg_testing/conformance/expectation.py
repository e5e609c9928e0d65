"""What the interface lets a service answer, and what is wrong with an answer."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from payagg_testing.conformance.service import ServiceAnswer

SHOWN_MAX = 600  # characters of a value
ABSENT = "absent"
# "internal and never returned by any endpoint"
INTERNAL = frozenset({"processorResponse", "processorReference", "webhookUrl"})


def look(node: Any, path: str) -> Any:
    """What stands at `a.b`, at `rows[*].name` (of every row) or at `rows[name=value].other` (of the first such row)."""
    part = re.match(r"\.?(?:(\w+)|\[\*\]|\[(\w+)=([^\]]*)\])", path)
    if part is None:
        return node
    name, column, value = part.groups()
    rest = path[part.end() :]
    if name:
        return look(node[name], rest) if isinstance(node, dict) and name in node else ABSENT
    rows = [row for row in node if isinstance(row, dict)] if isinstance(node, list) else []
    if column:
        rows = [row for row in rows if row.get(column) == value]
        return look(rows[0], rest) if rows else ABSENT
    return [look(row, rest) for row in rows]


def judge(found: Any, relation: str, value: Any) -> bool:
    """Whether what was found is as expected: `is`, `among` (any of the values), `has` and `lacks` (all of them),
    `order` (all of them, in this one), `matches` (a whole text)."""
    if relation == "is":
        return bool(found == value) and type(found) is type(value)
    if relation == "among":
        return any(judge(found, "is", each) for each in value)
    if relation == "order":
        return bool([each for each in found if each in value] == value)
    if relation == "matches":
        return isinstance(found, str) and re.fullmatch(value, found) is not None
    inside = [each in found for each in value]
    return all(inside) if relation == "has" else not any(inside)


def general_fault(status: int, body: Any) -> str | None:
    """What is wrong with an answer whatever was asked: its envelope, or a field that no endpoint may return."""
    if not isinstance(body, dict) or not isinstance(body.get("success"), bool):
        return "there is no envelope"
    if body["success"] != (status < 400):
        return f"success is {body['success']} with status {status}"
    error = body.get("error") if status >= 400 else {"code": "", "message": ""}
    if not isinstance(error, dict) or not {"code", "message"} <= set(error) <= {"code", "message", "field"}:
        return "the error has not exactly code, message and field"
    shown = internal_fields(body)
    return f"the internal field {min(shown)} is returned" if shown else None


def internal_fields(node: Any) -> set[str]:
    """What merchants put into metadata is theirs."""
    if isinstance(node, list):
        return set().union(*map(internal_fields, node))
    if not isinstance(node, dict):
        return set()
    inner = [internal_fields(value) for name, value in node.items() if name != "metadata"]
    return (set(node) & INTERNAL).union(*inner)


@dataclass(frozen=True)
class Check:
    """What must hold of a place in an answer other than that it equals a value: `relation` is a word of `judge`."""

    relation: str
    value: Any

    def __str__(self) -> str:
        return f"{self.relation} {json.dumps(self.value)}"


def has(*values: Any) -> Check:
    return Check("has", list(values))


def lacks(*values: Any) -> Check:
    return Check("lacks", list(values))


def among(*values: Any) -> Check:
    return Check("among", list(values))


def in_order(*values: Any) -> Check:
    return Check("order", list(values))


def matches(pattern: str) -> Check:
    return Check("matches", pattern)


@dataclass(frozen=True)
class Expected:
    """What the interface lets a service answer: one of `statuses`, with this code, and `data` as it says: by path (see
    `look`), a value, a Check or a tuple of Checks."""

    statuses: tuple[int, ...]
    code: str | None = None
    data: Mapping[str, Any] | None = None
    field: str = ""  # how the field that a refusal names begins

    @property
    def checks(self) -> list[tuple[str, Check]]:
        each = [(path, many if isinstance(many, tuple) else (many,)) for path, many in (self.data or {}).items()]
        return [(path, one if isinstance(one, Check) else Check("is", one)) for path, many in each for one in many]

    def __str__(self) -> str:
        words = " or ".join(map(str, self.statuses))
        if self.code is not None:
            words += f" {self.code}"
        if self.field:
            words += f" on {self.field}"
        if self.data:
            words += ", " + ", ".join(f"{path or 'data'} {check}" for path, check in self.checks)
        return words

    def fault(self, answer: ServiceAnswer) -> str | None:
        """What is wrong with the answer, in a few words; None when nothing is."""
        if answer.status not in self.statuses:
            return f"the status is {answer.status}"
        if self.code is not None and answer.code != self.code:
            return f"the code is {answer.code}"
        if not (answer.field or "").startswith(self.field):
            return f"the field named is {answer.field}"
        for path, check in self.checks:
            found = look(answer.data, path)
            if not judge(found, check.relation, check.value):
                return f"{path or 'data'} is {json.dumps(found)[:SHOWN_MAX]}"
        return general_fault(answer.status, answer.body)
