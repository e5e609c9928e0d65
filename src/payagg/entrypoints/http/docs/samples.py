"""How an operation is called, in four languages, from its description alone."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

VARIABLES = {"secretKey": "SECRET_KEY", "merchantBearer": "MERCHANT_TOKEN", "adminBearer": "ADMIN_TOKEN"}
# Of the whole site: what a page shows is escaped, a program is not.
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def samples(path: str, method: str, operation: Mapping[str, Any], base: str) -> dict[str, str]:
    """By language. The credential comes from the environment; ids are those of the recorded examples."""
    media = operation.get("requestBody", {}).get("content", {})
    body = media.get("application/json", {}).get("example")
    plain = json.dumps(body, ensure_ascii=False)
    facts = {
        "verb": method.upper(),
        "address": base + re.sub(r"\{(\w+)\}", lambda found: _value(found[1], operation), path) + _query(operation),
        "variable": next((VARIABLES[scheme] for need in operation["security"] for scheme in need), None),
        "signed": [one["name"] for one in _required_parameters(operation, "header")],
        "is_upload": "multipart/form-data" in media,
        "body": body,
        "plain": plain,
        "json": plain.replace("'", "\\u0027"),
    }
    languages = ("bash",) if facts["is_upload"] else ("bash", "python", "js", "php")
    return {language: TEMPLATES.get_template(f"{language}.txt").render(facts) for language in languages}


def _required_parameters(operation: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    return [one for one in operation["parameters"] if one["in"] == place and one["required"]]


def _value(name: str, operation: Mapping[str, Any]) -> str:
    schema = next(one["schema"] for one in operation["parameters"] if one["name"] == name)
    return str(schema.get("examples", schema.get("enum", [name]))[0])


def _query(operation: Mapping[str, Any]) -> str:
    pairs = [f"{one['name']}={_value(one['name'], operation)}" for one in _required_parameters(operation, "query")]
    return "?" + "&".join(pairs) if pairs else ""
