"""What `dev` prints when everything runs: lines to paste, in the order a newcomer needs them."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from payagg.entrypoints.dev.demo import AMOUNT, Demo


def tour(demo: Demo, *, state: Path) -> str:
    """The printed tour; each `curl` line runs as it stands."""
    shown = demo.shown
    api, key = shown["baseUrl"], shown["sandboxSecretKey"]
    auth = f"-H 'Authorization: Bearer {key}'"
    as_json = "-H 'Content-Type: application/json'"
    new = json.dumps({"amount": AMOUNT, "customerEmail": "ada@example.com", "idempotencyKey": f"tour-{demo.reference}"})
    outcome = json.dumps({"outcome": "SUCCESS"})
    lines = [
        "",
        _bold("payagg is running."),
        "",
        f"  {_bold('Pay')}    {shown['checkoutUrl']}",
        "         choose Test card, 4242 4242 4242 4242 (4000 0000 0000 0002 is declined)",
        f"  {_bold('Inbox')}  {shown['webhookInboxUrl']}   each signed webhook as it arrives",
        f"  {_bold('Docs')}   {shown['docsUrl']}",
        *_console(shown),
        "",
        _bold("A merchant's server, to paste:"),
        "",
        _dim("  # a new payment: a reference and a checkout link"),
        f"  curl -sS {api}/payments/initiate {auth} {as_json} -d '{new}'",
        "",
        _dim("  # how a payment stands"),
        f"  curl -sS {api}/payments/{demo.reference} {auth}",
        "",
        _dim("  # how it shall end; the webhook appears in the inbox"),
        f"  curl -sS {api}/payments/{demo.reference}/simulate {auth} {as_json} -d '{outcome}'",
        "",
        _dim(f"  Tokens and keys: {state / 'demo.json'}   Log: {state / 'dev.log'}"),
        "  Ctrl-C stops everything; the data stays. `payagg dev --fresh` starts over.",
        "",
    ]
    return "\n".join(lines)


def _console(shown: Mapping[str, str]) -> list[str]:
    if "consoleUrl" not in shown:
        return []
    return [
        f"  {_bold('Console')}  {shown['consoleUrl']}   signed in as the merchant",
        f"           {shown['adminConsoleUrl']}   as an administrator",
    ]


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() else text


def _dim(text: str) -> str:
    return f"\033[2m{text}\033[0m" if sys.stdout.isatty() else text
