"""What a replaying script is made of: its source is copied into every script, so a script judges as the machine did."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import httpx

ABSENT = "absent"


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
    """Whether what was found is as expected: `is`, `has` and `lacks` (all of the values), `matches` (a whole text)."""
    if relation == "is":
        return bool(found == value) and type(found) is type(value)
    if relation == "matches":
        return isinstance(found, str) and re.fullmatch(value, found) is not None
    inside = [each in found for each in value]
    return all(inside) if relation == "has" else not any(inside)


@cache
def client() -> httpx.Client:
    return httpx.Client(timeout=30, trust_env=False)


def call(request: Mapping[str, Any]) -> httpx.Response:
    headers = dict(request.get("headers", {}))
    if "bearer" in request:
        headers["Authorization"] = "Bearer " + request["bearer"]
    sent = {"json": request["body"]} if "body" in request else {"content": request.get("content")}
    url = os.environ["BASE_URL"] + request["path"]
    return client().request(request["method"], url, headers=headers, **sent)


def together(requests: Sequence[Mapping[str, Any]]) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(call, requests))


def expect(
    step: int,
    answer: httpx.Response,
    statuses: Sequence[int],
    code: str | None = None,
    checks: Sequence[Sequence[Any]] = (),
) -> None:
    body = answer.json() if answer.content[:1] == b"{" else {}
    found = (body.get("error") or {}).get("code")
    wrong = [path for path, relation, value in checks if not judge(look(body.get("data"), path), relation, value)]
    if answer.status_code not in statuses or (code and code != found) or wrong:
        sys.exit(
            f"step {step}: expected {statuses} {code or ''} {list(checks)}\ncame {answer.status_code} {answer.text}"
        )


def expect_together(step: int, answers: Sequence[httpx.Response], statuses: Sequence[int], same: str) -> None:
    values = {str(look(answer.json().get("data"), same)) for answer in answers}
    if sorted(answer.status_code for answer in answers) != sorted(statuses) or len(values) != 1:
        sys.exit(f"step {step}: expected {statuses} with one {same}\ncame {[answer.text for answer in answers]}")
