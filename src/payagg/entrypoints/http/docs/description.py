"""The API's description, as `make docs` writes it, spelt as this deployment is; and the part for one audience."""

import copy
import json
import re
from enum import Enum
from typing import Any

from payagg.entrypoints.http.docs.pages import DOCS
from payagg.entrypoints.settings import Settings

DEFAULTS = Settings()  # which the written description is of

_REFERENCE = re.compile(r"#/components/(\w+)/(.+)")


def describe(settings: Settings) -> dict[str, Any]:
    """OpenAPI 3.1, with the deployment's address, slugs and prefix of references."""
    written = (DOCS / "openapi.json").read_text(encoding="utf-8")
    own = {DEFAULTS.base_url: settings.base_url, **{spec.name: spec.slug for spec in settings.providers}}
    # At once: one provider may have the other's name for a slug, and the address may hold one.
    names = re.compile("|".join([*map(re.escape, own), "(?<![A-Z])PAY(?=-[0-9]{8}-[A-Z0-9]{6})"]))
    text = names.sub(lambda name: own.get(name[0], settings.reference_prefix), written)
    found: dict[str, Any] = json.loads(text)
    return found


class Audience(Enum):
    """`prefixes` are those of the paths that this audience calls. CLIENT is any program that calls and is sent nothing:
    the Python that OpenAPI Generator makes of a `webhooks` section does not compile."""

    MERCHANT = "merchant", ("/payments", "/events", "/merchant/")
    ADMIN = "admin", ("/admin/",)
    PAYER = "payer", ("/public/",)
    PROVIDER = "provider", ("/webhooks/",)
    CLIENT = "client", ("/",)

    def __init__(self, word: str, prefixes: tuple[str, ...]) -> None:
        self.word = word
        self.prefixes = prefixes


def described_for(audience: Audience, whole: dict[str, Any]) -> dict[str, Any]:
    """`whole` reduced to the audience's operations. Events are the merchant's."""
    kept = copy.deepcopy(whole)
    kept["info"]["title"] += f", for the {audience.word}"
    kept["paths"] = {path: item for path, item in kept["paths"].items() if path.startswith(audience.prefixes)}
    if audience is not Audience.MERCHANT:
        del kept["webhooks"]
    operations = [
        op for section in ("paths", "webhooks") for item in kept.get(section, {}).values() for op in item.values()
    ]
    ids = {operation["operationId"] for operation in operations}
    for answer in (answer for operation in operations for answer in operation["responses"].values()):
        if "links" in answer:
            answer["links"] = {name: link for name, link in answer["links"].items() if link["operationId"] in ids}
    tags = {tag for operation in operations for tag in operation["tags"]}
    kept["tags"] = [tag for tag in kept["tags"] if tag["name"] in tags]
    _prune(kept, {scheme for operation in operations for need in operation["security"] for scheme in need})
    return kept


def _prune(kept: dict[str, Any], schemes: set[str]) -> None:
    """Keeps only the referenced components."""
    components = kept.pop("components")
    used: set[tuple[str, str]] = {("securitySchemes", scheme) for scheme in schemes}
    waiting: list[Any] = [kept]
    while waiting:
        for found in _references(waiting.pop()):
            if found not in used:
                used.add(found)
                waiting.append(components[found[0]][found[1]])
    shown = {kind: {n: one for n, one in held.items() if (kind, n) in used} for kind, held in components.items()}
    kept["components"] = {kind: held for kind, held in shown.items() if held}


def _references(node: Any) -> set[tuple[str, str]]:
    if isinstance(node, list):
        return {found for inner in node for found in _references(inner)}
    if not isinstance(node, dict):
        return set()
    found = {found for inner in node.values() for found in _references(inner)}
    to = _REFERENCE.fullmatch(str(node.get("$ref", "")))
    return found | {(to[1], to[2])} if to else found
