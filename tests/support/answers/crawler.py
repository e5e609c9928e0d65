"""What no answer may hold at any depth, and the few places where the interface lists it nonetheless."""

import re
from collections.abc import Iterator
from typing import Any

from tests.support.answers.recorder import Answer

WEBHOOKS = "/merchant/businesses/{businessId}/webhooks"
# A field name that only these operations may show, with the status that shows it.
LISTED: dict[str, set[tuple[str, int]]] = {
    "processorResponse": set(),
    "processorReference": set(),
    "webhookUrl": set(),
    "businessId": {
        ("GET /payments/context", 200),
        ("GET /admin/gateways/{gatewayId}", 200),
        ("GET /admin/gateways/{gatewayId}/merchants", 200),
        ("GET /admin/payments", 200),
        ("GET /admin/audit", 200),
        ("GET /merchant/businesses/{businessId}/audit", 200),
    },
    "secretKey": {("POST /merchant/businesses/{businessId}/api-keys", 201)},
    "signingSecret": {(f"POST {WEBHOOKS}", 201), (f"POST {WEBHOOKS}/{{endpointId}}/rotate-secret", 200)},
}
# Words about secrets that are none.
HARMLESS = {
    *("secretKeyDisplay", "secretKeyNote", "secretLast4", "hasCredentials", "credentialNames", "credentialsOnFile"),
    # Of an audit entry: names, environments and instants, never a value.
    *("credentialsSet", "credentialsRemoved", "replacedSecretsUntil", "endedSecrets"),
    "eventDigest",  # tells two refunds without an id apart: some of the digest of a provider's body
}
SECRETIVE = re.compile(r"secret|hash|digest|password|credential|private|ciphertext|cvv|cardnumber", re.IGNORECASE)
SHAPES = {
    "a secret key": re.compile(r"ssk_(?:sand|live)_[0-9a-f]{48}"),
    "a signing secret": re.compile(r"whsec_[A-Za-z0-9+/=]{16,}"),
    "a provider's key": re.compile(r"\bsk_(?:test|live)_|PZ78-"),
    "a hash": re.compile(r"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{128})(?![0-9a-f])"),
    "a token": re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"),
    "a traceback": re.compile(r'Traceback|File "|\.py\b|psycopg|sqlalchemy|site-packages|<object at'),
}
SHOWN = {"secretKey": "a secret key", "signingSecret": "a signing secret"}
# Pages of the console that show what the API's answer to the same form shows, once.
CONSOLE = "POST /console/business/{businessId}/{environment}"
PAGES = {
    (f"{CONSOLE}/keys", 200): "a secret key",
    (f"{CONSOLE}/webhooks", 200): "a signing secret",
    (f"{CONSOLE}/webhooks/{{endpointId}}/rotate", 200): "a signing secret",
}
# Every scheme begins with 2 to 6 and is written whole or in groups.
CARD = re.compile(r"(?<![\w-])[2-6][0-9]{3}(?:[ -]?[0-9]{2,6}){2,4}(?![\w-])")
# The page lists the simulator's cards, which are nobody's; the description is the same for everyone.
STATIC = ("/docs", "/openapi.json", "/openapi/")


def leaks(answer: Answer) -> Iterator[str]:
    """One line per thing that must not be there, with the path that leads to it."""
    if answer.route is not None and answer.route.startswith(STATIC):
        return
    where = f"{answer.operation} {answer.status}"
    data = answer.json()
    if data is not None:
        yield from (f"{where}: {found}" for found in _crawled(data, "", answer))
    elif answer.media_type.startswith("text/"):
        text = answer.body.decode("utf-8", "replace")
        shown = PAGES.get((answer.operation, answer.status))
        yield from (
            f"{where}: {kind}" for kind, shape in SHAPES.items() if kind not in ("a hash", shown) and shape.search(text)
        )


def _crawled(node: Any, path: str, answer: Answer) -> Iterator[str]:
    if isinstance(node, dict):
        for name, inner in node.items():
            here = f"{path}.{name}"
            # A merchant's metadata is the merchant's own words, under names of the merchant's own.
            if not _may_show(name, answer) and ".metadata" not in path:
                yield f"the field {here}"
            yield from _crawled(inner, here, answer)
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from _crawled(inner, f"{path}[{index}]", answer)
    elif isinstance(node, str):
        shown = SHOWN.get(path.rpartition(".")[2])
        yield from (f"{kind} in {path}" for kind, shape in SHAPES.items() if kind != shown and shape.search(node))
        if any(_is_card(re.sub(r"[ -]", "", found)) for found in CARD.findall(node)):
            yield f"a card number in {path}"


def _may_show(name: str, answer: Answer) -> bool:
    if name in LISTED:
        return (answer.operation, answer.status) in LISTED[name]
    if name.startswith("customer"):
        return answer.route is not None and not answer.route.startswith(("/public/", "/webhooks/"))
    return name in HARMLESS or not SECRETIVE.search(name)


def _is_card(digits: str) -> bool:
    """By length and by Luhn's sum, which every card number keeps and one random number in ten."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0
