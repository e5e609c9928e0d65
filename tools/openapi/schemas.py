"""Bounds and examples for generated schemas: every string, number and list of the document states its limits."""

from inspect import cleandoc
from typing import Any

from payagg.domain.business import BUSINESS_NAME_MAX
from payagg.domain.checks import ID_MAX, ID_PATTERN
from payagg.domain.payment import CUSTOMER_NAME_MAX, CUSTOMER_PHONE_MAX
from payagg.domain.values import CURRENCY, EMAIL_MAX, SLUG_MAX, URL_MAX

TEXT_MAX = 4096
ITEMS_MAX = 1000
INT32_MAX = 2**31 - 1
INT64_MAX = 2**53 - 1
ID = {
    "type": "string",
    "minLength": 1,
    "maxLength": ID_MAX,
    "pattern": ID_PATTERN,
    "examples": ["key_0194bb1c2f00"],
}
DATE_TIME = {"format": "date-time", "maxLength": 40, "examples": ["2025-01-31T12:00:00Z"]}
# What a plain `str` or `datetime` field is, by its name; a type's own bounds come first.
FIELDS: dict[str, dict[str, Any]] = {
    "currency": {"enum": [CURRENCY]},
    "checkoutUrl": {
        "format": "uri",
        "maxLength": 8192,
        "examples": ["https://pay.example/checkout/PAY-20250131-7K2M9X"],
    },
    "redirectUrl": {"format": "uri", "maxLength": 4096, "examples": ["https://shop.example/thanks?status=SUCCESS"]},
    "callbackUrl": {"format": "iri", "maxLength": URL_MAX, "examples": ["https://shop.example/thanks"]},
    "webhookUrl": {"format": "iri", "maxLength": URL_MAX},
    "url": {"format": "iri", "maxLength": URL_MAX, "examples": ["https://shop.example/hooks"]},
    "customerEmail": {"format": "idn-email", "maxLength": EMAIL_MAX, "examples": ["ada@example.com"]},
    "customerName": {"maxLength": CUSTOMER_NAME_MAX, "examples": ["Ada Obi"]},
    "customerPhone": {"maxLength": CUSTOMER_PHONE_MAX, "examples": ["+2348012345678"]},
    "businessName": {"maxLength": BUSINESS_NAME_MAX, "examples": ["Ada's Shop"]},
    "gateway": {"maxLength": SLUG_MAX, "examples": ["sandbox"]},
    "message": {"maxLength": 500, "examples": ["Done."]},
}


def add_bounds(node: Any) -> None:
    """Adds, in place, what a type leaves open: lengths of strings, range and format of integers, sizes of lists,
    and unindented descriptions."""
    if isinstance(node, list):
        for inner in node:
            add_bounds(inner)
        return
    if not isinstance(node, dict):
        return
    if isinstance(node.get("description"), str):
        node["description"] = cleandoc(node["description"])  # Python before 3.13 keeps a docstring's indentation
    for name, inner in node.get("properties", {}).items():
        _specify(name, inner)
    for inner in node.values():
        add_bounds(inner)
    # "Absent is null" is no default to generators: openapi-typescript takes a field with one for required.
    if node.get("default", node) is None:
        del node["default"]
    if "enum" in node and all(isinstance(word, str) for word in node["enum"]):
        node.setdefault("type", "string")
    kind = node.get("type")
    closed = "enum" in node or "const" in node or "$ref" in node
    if kind == "string" and not closed:
        node.setdefault("maxLength", TEXT_MAX)
        if "format" not in node and "pattern" not in node:
            node["pattern"] = "^[^\\u0000]*$"
    elif kind == "integer" and not closed:
        node.setdefault("minimum", 0)
        node.setdefault("maximum", INT32_MAX if node.get("format") == "int32" else INT64_MAX)
        if node["maximum"] < 2**63:  # a sum may be past any format
            node.setdefault("format", "int64" if node["maximum"] > INT32_MAX else "int32")
    elif kind == "array":
        node.setdefault("maxItems", ITEMS_MAX)


def _specify(name: str, schema: Any) -> None:
    """Gives a field's text schema what its name says about it."""
    for inner in (schema, *schema.get("anyOf", ())):
        if inner.get("type") != "string" or "pattern" in inner or "enum" in inner:
            continue
        known = FIELDS.get(name, {})
        if name == "at" or name.endswith("At"):
            known = DATE_TIME
        elif name == "id" or name.endswith("Id"):
            known = ID
        for key, value in known.items():
            inner.setdefault(key, value)
