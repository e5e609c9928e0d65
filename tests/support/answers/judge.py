"""What the recorded answers of a session must show."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonschema

from payagg.domain.errors import ErrorCode
from payagg.entrypoints.http.app import api_routes
from payagg.entrypoints.http.docs.reference import CODES
from tests.rules import operations, proofs
from tests.support.answers.crawler import leaks
from tests.support.answers.recorder import Answer, answers
from tools.openapi.document import document
from tools.openapi.operations import routes_of

# The framework answers the first two on every path, and a cell the third about what another has.
UNDESCRIBED = {404, 405, 421}


def judged(folder: Path, *, whole: bool) -> list[str]:
    """Every finding, one line each; what was never provoked counts only when the `whole` tree ran."""
    kept = list(answers(folder))
    found = sorted({leak for answer in kept for leak in leaks(answer)})
    found += sorted(set(misfits(kept)))
    return found + (list(gaps(kept)) if whole else [])


def gaps(kept: Iterable[Answer]) -> Iterator[str]:
    """Codes that no test met, successes that no operation came to, and tests that do not do what their marker says."""
    met, reached, successes = set(), set(), set()
    for answer in kept:
        successes.add((answer.operation, answer.status))
        reached.add((answer.operation, answer.test))
        data = answer.json()
        if isinstance(data, dict) and data.get("success") is False:
            met.add((data["error"]["code"], answer.test))
    codes = {code for code, _ in met}
    yield from (f"no HTTP test provokes {code.name}" for code in ErrorCode if code.name not in codes)
    for route in routes_of(api_routes()):
        for status in filter(None, (route.operation.status, route.operation.replay_status)):
            operation = f"{route.method.upper()} {route.path}"
            if (operation, status) not in successes:
                yield f"no HTTP test is answered {status} by {operation}"
    tests = proofs()
    for rules, done in ((operations(), reached), ((code.name for code in ErrorCode), met)):
        yield from (
            f"{test} does not meet {rule}" for rule in rules for test in tests[rule] if (rule, test) not in done
        )


def misfits(kept: Iterable[Answer]) -> Iterator[str]:
    """Answers that the description does not describe. One of each shape is looked at: there are tens of thousands."""
    whole = document(api_routes())
    described = {f"{m.upper()} {path}": op for path, ops in whole["paths"].items() for m, op in ops.items()}
    seen = set()
    for answer in kept:
        operation = described.get(answer.operation)
        if operation is None:
            continue
        where = f"{answer.operation} {answer.status}"
        response = operation["responses"].get(str(answer.status))
        if response is None:
            if answer.status not in UNDESCRIBED:
                yield f"{where}: an undescribed status"
            continue
        if answer.media_type not in response["content"]:
            yield f"{where}: an undescribed media type {answer.media_type}"
            continue
        data = answer.json()
        shape = (where, json.dumps(_shape(data)))
        if data is None or shape in seen:
            continue
        seen.add(shape)
        schema = {**response["content"][answer.media_type]["schema"], "components": whole["components"]}
        if data["success"] is not (answer.status < 400):
            yield f"{where}: `success` says the opposite"
        if not data["success"] and data["error"]["code"] not in response[CODES]:
            yield f"{where}: an undescribed code {data['error']['code']}"
        for error in jsonschema.Draft202012Validator(schema).iter_errors(data):
            yield f"{where}: {error.json_path}: {error.message[:200]}"


def _shape(node: Any) -> Any:
    """Names and types, and the words that are spelt like constants."""
    if isinstance(node, dict):
        return {name: _shape(inner) for name, inner in node.items()}
    if isinstance(node, list):
        return [_shape(inner) for inner in node[:1]]
    return node if isinstance(node, str) and node.isupper() and len(node) < 40 else type(node).__name__
