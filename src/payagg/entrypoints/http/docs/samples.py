"""How an operation is called, in four languages, from its description alone."""

import json
import re
from collections.abc import Mapping
from typing import Any

VARIABLES = {"secretKey": "SECRET_KEY", "merchantBearer": "MERCHANT_TOKEN", "adminBearer": "ADMIN_TOKEN"}


def samples(path: str, method: str, operation: Mapping[str, Any], base: str) -> dict[str, str]:
    """By language. The credential comes from the environment; ids are those of the recorded examples."""
    address = base + re.sub(r"\{(\w+)\}", lambda found: _value(found[1], operation), path) + _query(operation)
    variable = next((VARIABLES[scheme] for need in operation["security"] for scheme in need), None)
    media = operation.get("requestBody", {}).get("content", {})
    body = media.get("application/json", {}).get("example")
    verb = method.upper()
    if "multipart/form-data" in media:
        return {"bash": f"{_curl(verb, address, variable, {})} \\\n  -F file=@logo.png"}
    given = {one["name"]: "$SIGNATURE" for one in _required_parameters(operation, "header")}
    # Not `--json`, which curls of before 2022 lack.
    sent = "" if body is None else f" \\\n  -H \"Content-Type: application/json\" -d '{_json(body)}'"
    return {
        "bash": _curl(verb, address, variable, given) + sent,
        "python": _python(verb, address, variable, given, body),
        "js": _node(verb, address, variable, given, body),
        "php": _php(verb, address, variable, given, body),
    }


def _required_parameters(operation: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    return [one for one in operation["parameters"] if one["in"] == place and one["required"]]


def _value(name: str, operation: Mapping[str, Any]) -> str:
    schema = next(one["schema"] for one in operation["parameters"] if one["name"] == name)
    return str(schema.get("examples", schema.get("enum", [name]))[0])


def _query(operation: Mapping[str, Any]) -> str:
    pairs = [f"{one['name']}={_value(one['name'], operation)}" for one in _required_parameters(operation, "query")]
    return "?" + "&".join(pairs) if pairs else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("'", "\\u0027")


def _curl(verb: str, address: str, variable: str | None, given: Mapping[str, str]) -> str:
    lines = [f'curl -sS -X {verb} "{address}"']
    lines += [f'-H "Authorization: Bearer ${variable}"'] if variable else []
    lines += [f'-H "{name}: {value}"' for name, value in given.items()]
    return " \\\n  ".join(lines)


def _python(verb: str, address: str, variable: str | None, given: Mapping[str, str], body: Any) -> str:
    headers = [f'"{name}": os.environ["SIGNATURE"]' for name in given]
    headers += [f'"Authorization": "Bearer " + os.environ["{variable}"]'] if variable else []
    lines = ["import os" if headers else "", "", "import requests", "", "answer = requests.request("]
    lines += [f'    "{verb}",', f'    "{address}",']
    lines += [f"    headers={{{', '.join(headers)}}},"] if headers else []
    lines += [f"    json={body!r},"] if body is not None else []
    lines += ["    timeout=30,", ")", "print(answer.status_code, answer.text)"]
    return "\n".join(lines).lstrip("\n") + "\n"


def _node(verb: str, address: str, variable: str | None, given: Mapping[str, str], body: Any) -> str:
    headers = [f'"{name}": process.env.SIGNATURE' for name in given]
    headers += [f'"Authorization": `Bearer ${{process.env.{variable}}}`'] if variable else []
    headers += ['"Content-Type": "application/json"'] if body is not None else []
    lines = [f'const answer = await fetch("{address}", {{', f'  method: "{verb}",']
    lines += [f"  headers: {{ {', '.join(headers)} }},"] if headers else []
    lines += [f"  body: JSON.stringify({json.dumps(body, ensure_ascii=False)}),"] if body is not None else []
    return "\n".join([*lines, "});", "console.log(answer.status, await answer.text());"]) + "\n"


def _php(verb: str, address: str, variable: str | None, given: Mapping[str, str], body: Any) -> str:
    headers = [f"'{name}: ' . getenv('SIGNATURE')" for name in given]
    headers += [f"'Authorization: Bearer ' . getenv('{variable}')"] if variable else []
    headers += ["'Content-Type: application/json'"] if body is not None else []
    lines = ["<?php", "$context = stream_context_create(['http' => [", f"    'method' => '{verb}',"]
    lines += [f"    'header' => [{', '.join(headers)}],"] if headers else []
    lines += [f"    'content' => '{_json(body)}',"] if body is not None else []
    lines += ["    'ignore_errors' => true,", "]]);"]
    return "\n".join([*lines, f"echo file_get_contents('{address}', false, $context), PHP_EOL;"]) + "\n"
