"""The arguments of `payagg`: imports only the domain and the extensions' names, so `payagg --help` works everywhere."""

import argparse
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path

from payagg import __version__
from payagg.domain.anomaly import AnomalyKind, Severity
from payagg.domain.audit import Action
from payagg.entrypoints.extensions import NAMES, Command, commands_of

GROUPS = {
    "Start": {
        "dev": "start everything in one terminal, with demo data and a tour",
        "serve": "start the API and, without --no-worker, the worker",
        "worker": "start a worker: deliveries, expiry, drains, reconciliation",
        "migrate": "bring the schema up to date",
    },
    "Set up": {
        "keygen": "print new secrets as lines of an environment file",
        "config": "show each setting in force, and where it comes from",
        "token": "print a bearer token",
        "business": "create and change businesses and their members",
    },
    "Inspect": {
        "doctor": "check the money rules on the live database",
        "explain": "show the timeline of one payment",
        "anomalies": "list facts about money that changed no payment, and close them",
        "audit": "show who changed what, newest first",
        "openapi": "print the API's description",
    },
    "Ask providers": {
        "reconcile": "compare a provider's own list or statement with our payments",
    },
    "Manage stored data": {
        "retention": "clear who paid in payments that ended long ago",
        "disclose": "print all that is kept about one payer, as JSON",
        "erase": "clear one payer in every payment that can no longer be paid",
        "reseal": "encrypt every stored secret again, with the first encryption key",
    },
}
EXAMPLES = """Examples:
  payagg dev                                       start everything in one terminal, with demo data
  payagg keygen > payagg.env                       the secrets that `serve` needs
  payagg serve --workers 2                         behind a load balancer, with PAYAGG_DATABASE_URL set
  payagg explain PAY-20250131-7K2M9X               why a payment has its status
`payagg COMMAND --help` shows a command's options."""


def parser(extensions: Iterable[str] = NAMES) -> argparse.ArgumentParser:
    """Of an installation with these extensions."""
    brought = commands_of(extensions)
    whole = argparse.ArgumentParser(
        prog="payagg",
        usage="payagg [--version] COMMAND ...",
        description="A payment aggregator service for merchants.",
        epilog=f"{_groups(brought)}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"payagg {__version__}", help="print the version")
    commands = whole.add_subparsers(dest="command", prog="payagg", help=argparse.SUPPRESS)

    dev = _command(commands, "dev")
    dev.add_argument("--port", type=_port, default=8000, help="default: 8000")
    dev.add_argument("--fresh", action="store_true", help="delete the demo's data and keys first")
    dev.add_argument("--json", action="store_true", help="print demo.json as one line instead of the tour")

    serve = _command(commands, "serve")
    serve.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    serve.add_argument("--port", type=_port, default=8000, help="default: 8000")
    serve.add_argument("--workers", type=_count, default=1, help="processes that answer requests; default: 1")
    serve.add_argument("--no-worker", action="store_true", help="leave deliveries and sweeps to `payagg worker`")

    _command(commands, "worker")
    migrate = _command(commands, "migrate")
    migrate.add_argument("--dry-run", action="store_true", help="print the SQL that it would run, and change nothing")

    token = _command(commands, "token").add_subparsers(dest="realm", required=True)
    admin = token.add_parser("admin", help="for /admin")
    admin.add_argument("--role", choices=("SUPER_ADMIN", "ADMIN", "SUPPORT"), required=True)
    merchant = token.add_parser("merchant", help="for /merchant")
    merchant.add_argument("--no-email-verified", action="store_true")
    revoke = token.add_parser("revoke", help="refuse a token, or all tokens of a subject")
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("--id", metavar="JTI", help="the token with this `jti`")
    which.add_argument("--sub", help="every token of this subject that was issued until now")
    for realm in (admin, merchant):
        realm.add_argument("--sub", required=True, help="the subject: who the token speaks for")
        realm.add_argument("--ttl", type=_count, default=3600, help="seconds; default: 3600")

    business = _command(commands, "business")
    actions = business.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="create a business and print its id")
    create.add_argument("--name", required=True)
    create.add_argument("--owner", required=True, metavar="SUB")
    change = actions.add_parser("set", help="set KYC or status")
    change.add_argument("id")
    for one in (create, change):
        one.add_argument("--kyc", choices=("NOT_SUBMITTED", "PENDING", "UNDER_REVIEW", "APPROVED", "REJECTED"))
        one.add_argument("--status", choices=("ACTIVE", "RESTRICTED", "SUSPENDED"))
    member = actions.add_parser("member", help="add a member, change the role, or remove one")
    member.add_argument("id")
    member.add_argument("--sub", required=True)
    change_of_member = member.add_mutually_exclusive_group(required=True)
    change_of_member.add_argument("--role", choices=("OWNER", "ADMIN", "MEMBER"))
    change_of_member.add_argument("--remove", action="store_true")

    audit = _command(commands, "audit")
    audit.add_argument("--business", metavar="ID")
    audit.add_argument("--subject", metavar="SUB", help="who made the change")
    audit.add_argument("--object", metavar="ID", help="what was changed")
    words = sorted(action.value for action in Action)
    audit.add_argument("--action", choices=words, metavar="ACTION", help="for example gateway.enable")
    audit.add_argument("--from", dest="since", metavar="INSTANT", help="for example 2025-01-31T12:00:00Z")
    audit.add_argument("--to", dest="until", metavar="INSTANT", help="only entries before it")
    audit.add_argument("--after", metavar="ID", help="only entries older than this one")
    audit.add_argument("--limit", type=_count, default=100, help="default: 100")
    audit.add_argument("--json", action="store_true", help="one object instead of lines")

    explain = _command(commands, "explain")
    explain.add_argument("reference")
    _command(commands, "retention")
    reseal = _command(commands, "reseal")
    reseal.add_argument(
        "--dry-run", action="store_true", help="list how many secrets each key encrypts, and change nothing"
    )
    for name in ("disclose", "erase"):
        of_payer = _command(commands, name)
        of_payer.add_argument("--email", required=True, help="the payer's address, in any letter case")
    reconcile = _command(commands, "reconcile")
    reconcile.add_argument("--gateway", required=True, metavar="SLUG", help="for example provider_a")
    reconcile.add_argument("--environment", choices=("LIVE", "SANDBOX"), help="default: LIVE")
    reconcile.add_argument(
        "--from", dest="first", type=a_date, required=True, metavar="DATE", help="the first day; UTC"
    )
    reconcile.add_argument("--to", dest="last", type=a_date, metavar="DATE", help="the last day; default: the first")
    reconcile.add_argument(
        "--file", type=Path, metavar="CSV", help="the provider's exported statement, instead of its lists"
    )
    _command(commands, "doctor")
    anomalies = _command(commands, "anomalies")
    steps = anomalies.add_subparsers(dest="action", required=True)
    listed = steps.add_parser("list", help="newest first")
    listed.add_argument("--status", choices=("OPEN", "ACKNOWLEDGED", "CLOSED"))
    listed.add_argument("--kind", choices=[kind.value for kind in AnomalyKind])
    listed.add_argument("--severity", choices=[severity.value for severity in Severity])
    listed.add_argument("--assignee", metavar="SUB", help="who works on it")
    listed.add_argument("--reference")
    listed.add_argument("--after", metavar="ID", help="the last id of the page before")
    listed.add_argument("--limit", type=_count, default=50, help="default: 50")
    acknowledge = steps.add_parser("acknowledge", help="say that somebody looks at it")
    assign = steps.add_parser("assign", help="say who works on it")
    who = assign.add_mutually_exclusive_group(required=True)
    who.add_argument("--to", metavar="SUB")
    who.add_argument("--nobody", action="store_true", help="nobody works on it any more")
    note = steps.add_parser("note", help="write down what was found out")
    note.add_argument("--text", required=True)
    close = steps.add_parser("close", help="close it and say what was done")
    close.add_argument("--reason", required=True, help="what was done")
    for step in (acknowledge, assign, note, close):
        step.add_argument("id")
        step.add_argument("--by", required=True, metavar="SUB")
    _command(commands, "keygen")
    _command(commands, "config")
    _command(commands, "openapi")
    for own in brought:
        own.arguments(commands.add_parser(own.name, description=_sentence(own.meaning)))
    return whole


def _groups(brought: Sequence[Command]) -> str:
    groups = {
        title: group | {one.name: one.meaning for one in brought if one.group == title}
        for title, group in GROUPS.items()
    }
    width = max(len(name) for group in groups.values() for name in group) + 2
    return "\n\n".join(
        f"{title}:\n" + "\n".join(f"  {name:{width}}{text}" for name, text in group.items())
        for title, group in groups.items()
    )


def _command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str) -> argparse.ArgumentParser:
    """A command, described as in its group."""
    text = next(group[name] for group in GROUPS.values() if name in group)
    return commands.add_parser(name, description=_sentence(text))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def a_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date such as 2026-01-31") from None


def _whole(words: str, least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not {words}")
        return int(text)

    return read


_port = _whole("a port from 1 to 65535", 1, 65535)
_count = _whole("a whole number from 1 to 1000000000", 1, 10**9)
