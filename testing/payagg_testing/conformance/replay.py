"""What a replaying script is made of: its source is copied into every script, so a script judges as the machine did."""

import base64
import os
import re
import sys
import zlib
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


# "internal and never returned by any endpoint"
INTERNAL = frozenset({"processorResponse", "processorReference", "webhookUrl"})


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


def file_fault(came: bytes, sent: bytes) -> str | None:
    return None if came == sent else f"the file has other content, of {len(came)} bytes"


def pack(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def unpack(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def internal_fields(node: Any) -> set[str]:
    """What merchants put into metadata is theirs."""
    if isinstance(node, list):
        return set().union(*map(internal_fields, node))
    if not isinstance(node, dict):
        return set()
    inner = [internal_fields(value) for name, value in node.items() if name != "metadata"]
    return (set(node) & INTERNAL).union(*inner)


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
    field: str = "",
    file: bytes | None = None,
    shown: Sequence[Sequence[Any]] = (),
) -> None:
    body = answer.json() if answer.content[:1] == b"{" else {}
    error = body.get("error") or {}
    general = general_fault(answer.status_code, body) if file is None else file_fault(answer.content, file)
    wrong = [name for name, relation, value in shown if not judge(answer.headers.get(name), relation, value)]
    wrong += [path for path, relation, value in checks if not judge(look(body.get("data"), path), relation, value)]
    if not str(error.get("field") or "").startswith(field) or (code and code != error.get("code")):
        wrong.append("error")
    if answer.status_code not in statuses or wrong or general:
        foreseen = f"{statuses} {code or ''} {field} {[*checks, *shown]}"
        came = answer.text if file is None else f"{dict(answer.headers)}"
        sys.exit(f"step {step}: expected {foreseen}\ncame {answer.status_code} {came}\n{general or ''}")


def look_yourself(step: int, fault: str, answers: Any) -> None:
    """For what only the search could judge, as it knew more than one answer."""
    told = [answer.text for answer in (answers if isinstance(answers, list) else [answers])]
    sys.stderr.write(f"step {step}: is it still so, that {fault}?\ncame {told}\n")
    sys.exit(3)


def expect_together(step: int, answers: Sequence[httpx.Response], statuses: Sequence[int], same: str) -> None:
    values = {str(look(answer.json().get("data"), same)) for answer in answers}
    if sorted(answer.status_code for answer in answers) != sorted(statuses) or len(values) != 1:
        sys.exit(f"step {step}: expected {statuses} with one {same}\ncame {[answer.text for answer in answers]}")
