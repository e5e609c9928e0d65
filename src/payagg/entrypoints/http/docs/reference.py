"""The API reference: a page for each tag of the description, with what is sent, what is answered, and how to call."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from payagg.entrypoints.http.docs.markdown import anchor, choices, code

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


SECTION = "API reference"
CODES = "x-error-codes"  # where the description says which codes one response of an operation may carry
INDEX = "reference"
CREDENTIALS = {
    "secretKey": "a secret key",
    "merchantBearer": "a merchant's token",
    "adminBearer": "an administrator's token",
}
FORMATS = {"date-time": "date and time", "iri": "URL", "uri": "URL", "idn-email": "email address"}
Row = tuple[str, ...]


def slug_of(tag: str) -> str:
    return f"{INDEX}-{anchor(tag)}"


def inline(text: str) -> Markup:
    """Text with `code`, the one mark that descriptions use."""
    parts = [
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts)


TEMPLATES.filters |= {"anchor": anchor, "inline": inline}


@dataclass(frozen=True)
class Reference:
    """Of the OpenAPI `document`."""

    document: dict[str, Any]

    def index(self, address: Callable[[str], str]) -> str:
        """Every operation by tag, and the descriptions as files. `address`: of a slug."""
        return self._render("reference", address=lambda tag: address(slug_of(tag)))

    def page(self, tag: dict[str, str]) -> str:
        """The operations of one tag, each under an anchor of its id."""
        return self._render("tag", tag=tag)

    def _render(self, template: str, **facts: Any) -> str:
        own = ("operations", "parameters_of", "fields_of", "data_of", "calls", "refusals_of")
        shown = {name: getattr(self, f"_{name}") for name in own}
        known = {"document": self.document, "codes": CODES, "credential": _credential, "example": _example}
        return TEMPLATES.get_template(f"{template}.html").render(known | shown | facts)

    def _operations(self, tag: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Path (for what we send, its event), method and operation."""
        return [
            (path, method, operation)
            for section in ("paths", "webhooks")
            for path, item in self.document[section].items()
            for method, operation in item.items()
            if tag in operation["tags"]
        ]

    def _parameters_of(self, operation: dict[str, Any]) -> list[Row]:
        return [
            (one["name"], one["in"] + (", required" if one["required"] else ""), self._form(one["schema"]), _words(one))
            for one in operation["parameters"]
        ]

    def _fields_of(self, schema: dict[str, Any]) -> list[Row]:
        """The fields of an object; none for what has none that are named."""
        whole = self._resolve(schema)
        required = whole.get("required", [])
        return [
            (name, "yes" if name in required else "no", self._form(inner), _words(inner))
            for name, inner in whole.get("properties", {}).items()
        ]

    def _data_of(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What stands under `data` of an envelope; of a list, one item."""
        data: dict[str, Any] = self._resolve(schema)["properties"].get("data", {})
        item: dict[str, Any] = data.get("items", data)
        return item

    def _calls(self, path: str, method: str, operation: dict[str, Any]) -> Markup:
        listings = samples(path, method, operation, self.document["servers"][0]["url"])
        return Markup(choices(listings))  # noqa: S704 - escaped there

    def _refusals_of(self, operation: dict[str, Any]) -> list[Row]:
        messages = self.document["components"]["examples"]
        return [
            (status, f"`{name}`", messages[name]["summary"])
            for status, answer in operation["responses"].items()
            for name in answer.get(CODES, ())
        ]

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        name = schema.get("$ref", "").rpartition("/")[2]
        found: dict[str, Any] = self.document["components"]["schemas"][name] if name else schema
        return found

    def _form(self, schema: dict[str, Any]) -> str:
        """A schema in one line: `integer, 100 to 9007199254740991`; `text, 1 to 255 characters`."""
        whole = self._resolve(schema)
        if "anyOf" in whole:
            return " or ".join(map(self._form, whole["anyOf"]))
        if "enum" in whole:
            return "one of " + ", ".join(map(str, whole["enum"]))
        match whole.get("type"):
            case "string":
                shown = FORMATS.get(whole.get("format", ""), whole.get("format", "text"))
                low, high = whole.get("minLength"), whole.get("maxLength")
                if shown != "text" or high is None:
                    return str(shown)
                return f"text, {low} to {high} characters" if low else f"text, up to {high} characters"
            case "integer":
                return f"integer, {whole['minimum']} to {whole['maximum']}"
            case "array":
                return f"list of {self._form(whole['items'])}" if "items" in whole else "list"
            case kind:
                return str(kind or "anything")


def _credential(operation: dict[str, Any]) -> str:
    return next((CREDENTIALS[scheme] for need in operation["security"] for scheme in need), "none")


def _example(example: Any) -> Markup:
    is_text = isinstance(example, str)
    shown = example if is_text else json.dumps(example, indent=2, ensure_ascii=False)
    return Markup(code(shown, "text" if is_text else "json"))  # noqa: S704 - escaped there


def _words(schema: dict[str, Any]) -> str:
    inner: dict[str, Any] = next((one for one in schema.get("anyOf", ()) if "description" in one), {})
    return str(schema.get("description") or inner.get("description") or schema.get("schema", {}).get("description", ""))
