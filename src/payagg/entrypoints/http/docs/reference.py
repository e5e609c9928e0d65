"""The API reference: a page for each tag of the description, with what is sent, what is answered, and how to call."""

import json
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from payagg.entrypoints.http.docs.markdown import anchor, choices, code
from payagg.entrypoints.http.docs.samples import samples

SECTION = "API reference"
CODES = "x-error-codes"  # where the description says which codes one response of an operation may carry
INDEX = "reference"
CREDENTIALS = {
    "secretKey": "a secret key",
    "merchantBearer": "a merchant's token",
    "adminBearer": "an administrator's token",
}


def slug_of(tag: str) -> str:
    return f"{INDEX}-{anchor(tag)}"


def index(document: dict[str, Any], address: Callable[[str], str]) -> str:
    """Every operation by tag, and the descriptions as files."""
    parts = [
        "<h1>API reference</h1>",
        f"<p>{_inline(document['info']['description'])}</p>",
        f"<p>Base URL: <code>{escape(document['servers'][0]['url'])}</code></p>",
        '<p>As OpenAPI 3.1: <a href="/openapi.json">the whole</a>, for <a href="/openapi/merchant.json">merchants</a>, '
        '<a href="/openapi/admin.json">administrators</a>, <a href="/openapi/payer.json">payers</a>, '
        '<a href="/openapi/provider.json">providers</a>, and without webhooks for '
        '<a href="/openapi/client.json">generators</a>.</p>',
    ]
    for tag in document["tags"]:
        here = address(slug_of(tag["name"]))
        rows = "".join(
            f'<li><a href="{here}#{operation["operationId"]}">{_inline(operation["summary"])}</a></li>'
            for _, _, operation in _operations(document, tag["name"])
        )
        parts.append(f'<h2 id="{anchor(tag["name"])}">{escape(tag["name"])}</h2><p>{escape(tag["description"])}</p>')
        parts.append(f"<ul>{rows}</ul>")
    return "".join(parts)


def page(document: dict[str, Any], tag: dict[str, str]) -> str:
    """The operations of one tag, each under an anchor of its id."""
    parts = [f"<h1>{escape(tag['name'])}</h1><p>{escape(tag['description'])}</p>"]
    parts += [
        _operation(path, method, operation, document) for path, method, operation in _operations(document, tag["name"])
    ]
    return "".join(parts)


def _operations(document: dict[str, Any], tag: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Path (None for what we send), method and operation."""
    return [
        (path, method, operation)
        for section in ("paths", "webhooks")
        for path, item in document[section].items()
        for method, operation in item.items()
        if tag in operation["tags"]
    ]


def _operation(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    id, sent = escape(operation["operationId"]), path not in document["paths"]
    where = "POST to your endpoint" if sent else f"{method.upper()} {path}"
    parts = [f'<section><h2 id="{id}">{_inline(operation["summary"])}</h2><p><code>{escape(where)}</code></p>']
    parts.append(f"<p>{_inline(operation['description'])}</p>")
    scheme = next((CREDENTIALS[scheme] for need in operation["security"] for scheme in need), None)
    if not sent:
        parts.append(f"<p>Credential: {scheme or 'none'}.</p>")
    if operation["parameters"]:
        parts.append(_parameters(operation["parameters"], document))
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h3>Body, <code>{escape(kind)}</code></h3>{_fields(media['schema'], document)}")
        if sent:
            parts.append(_show_example(media["example"]))
    if not sent:
        base = document["servers"][0]["url"]
        parts.append(f"<h3>Call it</h3>{choices(samples(path, method, operation, base))}")
    parts.append(_answers(operation["responses"], document))
    return "".join(parts) + "</section>"


def _parameters(parameters: list[dict[str, Any]], document: dict[str, Any]) -> str:
    rows = [
        (
            one["name"],
            one["in"] + (", required" if one["required"] else ""),
            _form(one["schema"], document),
            _words(one),
        )
        for one in parameters
    ]
    return "<h3>Parameters</h3>" + _table(("Name", "In", "Form", "Meaning"), rows)


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """The fields of an object; nothing for what has none that are named."""
    whole = _resolve_schema(schema, document)
    required = whole.get("required", [])
    rows = [
        (name, "yes" if name in required else "no", _form(inner, document), _words(inner))
        for name, inner in whole.get("properties", {}).items()
    ]
    return _table(("Field", "Required", "Form", "Meaning"), rows) if rows else ""


def _answers(responses: dict[str, Any], document: dict[str, Any]) -> str:
    parts = ["<h3>Answers</h3>"]
    refusals = []
    for status, answer in responses.items():
        if CODES in answer:
            refusals += [(status, f"`{name}`", _message(name, document)) for name in answer[CODES]]
            continue
        parts.append(f"<p><strong>{escape(status)}</strong> {_inline(answer['description'])}</p>")
        for kind, media in answer.get("content", {}).items():
            if kind == "application/json":
                data = _resolve_schema(media["schema"], document)["properties"].get("data", {})
                parts.append(_fields(data.get("items", data), document))
            if "example" in media:
                parts.append(_show_example(media["example"]))
    if refusals:
        parts.append(_table(("Status", "Code", "Meaning"), refusals))
    return "".join(parts)


def _message(code: str, document: dict[str, Any]) -> str:
    return str(document["components"]["examples"][code]["summary"])


def _show_example(example: Any) -> str:
    if isinstance(example, str):
        return code(example, "text")
    return code(json.dumps(example, indent=2, ensure_ascii=False), "json")


def _resolve_schema(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found: dict[str, Any] = document["components"]["schemas"][name] if name else schema
    return found


def _words(schema: dict[str, Any]) -> str:
    inner: dict[str, Any] = next((one for one in schema.get("anyOf", ()) if "description" in one), {})
    return str(schema.get("description") or inner.get("description") or schema.get("schema", {}).get("description", ""))


def _form(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """A schema in one line: `integer, 100 to 9007199254740991`; `text, 1 to 255 characters`."""
    whole = _resolve_schema(schema, document)
    if "anyOf" in whole:
        return " or ".join(_form(one, document) for one in whole["anyOf"])
    if "enum" in whole:
        return "one of " + ", ".join(map(str, whole["enum"]))
    match whole.get("type"):
        case "string":
            kind = {"date-time": "date and time", "iri": "URL", "uri": "URL", "idn-email": "email address"}
            shown = kind.get(whole.get("format", ""), whole.get("format", "text"))
            low, high = whole.get("minLength"), whole.get("maxLength")
            if shown != "text" or high is None:
                return str(shown)
            return f"text, {low} to {high} characters" if low else f"text, up to {high} characters"
        case "integer":
            return f"integer, {whole['minimum']} to {whole['maximum']}"
        case "array":
            return f"list of {_form(whole['items'], document)}" if "items" in whole else "list"
        case None:
            return "anything"
        case kind:
            return str(kind)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """The first cell of a row is a name."""
    cells = "".join(f"<th>{name}</th>" for name in head)
    lines = "".join(
        f"<tr><td><code>{escape(row[0])}</code></td>{''.join(f'<td>{_inline(cell)}</td>' for cell in row[1:])}</tr>"
        for row in rows
    )
    return f'<div class="table" tabindex="0"><table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>'


def _inline(text: str) -> str:
    """Text with `code`, the one mark that descriptions use."""
    parts = text.split("`")
    return "".join(f"<code>{escape(part)}</code>" if place % 2 else escape(part) for place, part in enumerate(parts))
