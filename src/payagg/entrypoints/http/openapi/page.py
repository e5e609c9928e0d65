"""openapi.json and a page that shows it: rendered here, no script and no outside host."""

from html import escape
from typing import Any

import msgspec
from litestar import MediaType, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from payagg.domain.errors import ErrorCode, Refusal
from payagg.entrypoints.http.openapi.audiences import Audience, described_for

CACHED = {"Cache-Control": "public, max-age=300"}
HEADERS = {
    **CACHED,
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
}
STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d0d7de, #3d444d); --soft: light-dark(#f6f8fa, #161b22); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: 0.875rem; overflow-wrap: anywhere; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: 0.75rem; overflow: auto; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.5rem 0; }
summary { padding: 0.5rem 0.75rem; cursor: pointer; }
details > div { padding: 0 0.75rem 0.75rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.5rem; border-bottom: 1px solid var(--line); }
.method { display: inline-block; min-width: 4rem; font-weight: 700; text-transform: uppercase; }
"""


def routes_for(document: dict[str, Any]) -> list[HTTPRouteHandler]:
    """`/openapi.json`, that of each audience, `/docs` and its style sheet, rendered once."""
    whole = msgspec.json.encode(document)
    by_file = {f"{one.word}.json": msgspec.json.encode(described_for(one, document)) for one in Audience}
    page = _page(document).encode()

    @get("/openapi.json")
    async def openapi_json() -> Response[bytes]:
        return Response(whole, media_type=MediaType.JSON, headers=CACHED)

    @get("/openapi/{file:str}")
    async def openapi_of_audience(file: FromPath[str]) -> Response[bytes]:
        if file not in by_file:
            raise Refusal(ErrorCode.NOT_FOUND)
        return Response(by_file[file], media_type=MediaType.JSON, headers=CACHED)

    @get("/docs")
    async def docs() -> Response[bytes]:
        return Response(page, media_type=MediaType.HTML, headers=HEADERS)

    @get("/docs/style.css")
    async def style() -> Response[bytes]:
        return Response(STYLE.encode(), media_type=MediaType.CSS, headers=HEADERS)

    return [openapi_json, openapi_of_audience, docs, style]


def _page(document: dict[str, Any]) -> str:
    info = document["info"]
    sections = []
    for tag in document["tags"]:
        shown = [
            _operation(path, method, operation, document)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if tag["name"] in operation["tags"]
        ]
        sections.append(f"<h2>{escape(tag['name'])}</h2>{''.join(shown)}")
    schemas = "".join(
        f'<details id="schema-{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        f"<div>{_json(schema)}</div></details>"
        for name, schema in sorted(document["components"]["schemas"].items())
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(info["title"])} API</title><link rel="stylesheet" href="/docs/style.css"></head><body><main>'
        f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        f"<p>Base URL: <code>{escape(document['servers'][0]['url'])}</code>. "
        '<a href="/openapi.json">OpenAPI document</a></p>'
        f"{''.join(sections)}<h2>Schemas</h2>{schemas}</main></body></html>"
    )


def _operation(path: str, method: str, operation: dict[str, Any], document: dict[str, Any]) -> str:
    scheme = next(iter(operation["security"][0]), None)
    parts = [f"<p>{escape(operation['description'])}</p>"]
    parts.append(f"<p>Credential: <code>{escape(scheme or 'none')}</code></p>")
    if operation["parameters"]:
        rows = "".join(
            f"<tr><td><code>{escape(item['name'])}</code></td><td>{escape(item['in'])}</td>"
            f"<td>{_json(item['schema'])}</td></tr>"
            for item in operation["parameters"]
        )
        parts.append(f"<table><tr><th>Parameter</th><th>In</th><th>Form</th></tr>{rows}</table>")
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        parts.append(f"<h4>Body, <code>{escape(kind)}</code></h4>{_schema(media['schema'], document)}")
        if "example" in media:
            parts.append(_json(media["example"]))
    rows = "".join(
        f"<tr><td><code>{escape(status)}</code></td><td>{escape(answer['description'])}</td></tr>"
        for status, answer in operation["responses"].items()
    )
    parts.append(f"<h4>Answers</h4><table><tr><th>Status</th><th>Meaning</th></tr>{rows}</table>")
    example = next(
        (
            media["example"]
            for a in operation["responses"].values()
            for media in a.get("content", {}).values()
            if "example" in media
        ),
        None,
    )
    if example is not None:
        parts.append(_json(example))
    return (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method">{escape(method)}</span>'
        f"<code>{escape(path)}</code> {escape(operation['summary'])}</summary><div>{''.join(parts)}</div></details>"
    )


def _schema(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """The fields of a body as a table, where it is an object."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", [])
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{'yes' if name in required else 'no'}</td>"
        f"<td>{_json(inner)}</td></tr>"
        for name, inner in schema.get("properties", {}).items()
    )
    return f"<table><tr><th>Field</th><th>Required</th><th>Form</th></tr>{rows}</table>" if rows else _json(schema)


def _json(value: Any) -> str:
    return f"<pre>{escape(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())}</pre>"
