"""The `payagg` command. What an operator can mend is one line on stderr and exit status 1; wrong usage is 2."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from payagg import __version__
from payagg.entrypoints.setting_kinds import LOOPBACK
from payagg.entrypoints.settings import Settings, SettingsError, read_settings

DAYS_MAX = 36_500
Command = Callable[[argparse.Namespace, Settings], int]
Listener = TypeVar("Listener")


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits with its status."""
    options = _parser().parse_args(arguments)
    # Heavy modules are imported by the command that needs them: the small ones must answer at once.
    from payagg.adapters.postgres.embedded import EmbeddedPostgresError
    from payagg.application.ports import Unavailable
    from payagg.domain.errors import Refusal

    try:
        settings = read_settings(os.environ, dev=options.command == "dev")
        status = _commands()[options.command](options, settings)
    except (SettingsError, EmbeddedPostgresError) as error:
        status = _complain(str(error))
    except Refusal as refusal:
        status = _complain(f"{refusal.field}: {refusal.message}" if refusal.field else refusal.message)
    except Unavailable as error:
        status = _complain(f"The database cannot be used: {error}.")
    except BrokenPipeError:
        # The reader went away (`payagg explain ... | head`); there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def _complain(lines: str) -> int:
    for line in lines.splitlines():
        print(f"payagg: {line}", file=sys.stderr)  # noqa: T201
    return 1


def _parser() -> argparse.ArgumentParser:
    from payagg.domain.anomaly import AnomalyKind

    parser = argparse.ArgumentParser(prog="payagg", description="A payment aggregator service for merchants.")
    parser.add_argument("--version", action="version", version=f"payagg {__version__}", help="print the version")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    dev = commands.add_parser("dev", help="everything in one terminal, with demo data and a tour")
    dev.add_argument("--port", type=_port, default=8000)
    dev.add_argument("--fresh", action="store_true", help="forget the demo's data and keys first")
    dev.add_argument("--json", action="store_true", help="print demo.json as one line instead of the tour")

    serve = commands.add_parser("serve", help="the API and, unless told not to, the worker")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=_port, default=8000)
    serve.add_argument("--workers", type=_count, default=1, help="processes that answer requests")
    serve.add_argument("--no-worker", action="store_true", help="leave deliveries and sweeps to `payagg worker`")

    commands.add_parser("worker", help="deliveries, expiry, drains, reconciliation")
    migrate = commands.add_parser("migrate", help="bring the schema up to date")
    migrate.add_argument("--dry-run", action="store_true", help="print the SQL that it would run, and change nothing")

    token = commands.add_parser("token", help="print a bearer token").add_subparsers(dest="realm", required=True)
    admin = token.add_parser("admin", help="for /admin")
    admin.add_argument("--role", choices=("SUPER_ADMIN", "ADMIN", "SUPPORT"), required=True)
    merchant = token.add_parser("merchant", help="for /merchant")
    merchant.add_argument("--no-email-verified", action="store_true")
    revoke = token.add_parser("revoke", help="refuse a token, or all that a subject was given")
    which = revoke.add_mutually_exclusive_group(required=True)
    which.add_argument("--id", metavar="JTI", help="the token with this `jti`")
    which.add_argument("--sub", help="every token of this subject")
    revoke.add_argument("--issued-before", metavar="INSTANT", help="with --sub; default: now")
    for realm in (admin, merchant):
        realm.add_argument("--sub", required=True, help="the subject: who the token speaks for")
        realm.add_argument("--ttl", type=_count, default=3600, help="seconds")

    business = commands.add_parser("business", help="businesses and their members")
    actions = business.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="print the new business's id")
    create.add_argument("--name", required=True)
    create.add_argument("--owner", required=True, metavar="SUB")
    change = actions.add_parser("set", help="move KYC or set the status")
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

    audit = commands.add_parser("audit", help="who changed what, newest first")
    audit.add_argument("--business", metavar="ID")
    audit.add_argument("--subject", metavar="SUB", help="who made the change")
    audit.add_argument("--object", metavar="ID", help="what was changed")
    audit.add_argument("--action", help="for example gateway.enable")
    audit.add_argument("--from", dest="since", metavar="INSTANT", help="for example 2025-01-31T12:00:00Z")
    audit.add_argument("--to", dest="until", metavar="INSTANT", help="not included")
    audit.add_argument("--after", metavar="ID", help="only entries older than this one")
    audit.add_argument("--limit", type=_count, default=100)
    audit.add_argument("--json", action="store_true", help="one object instead of lines")

    explain = commands.add_parser("explain", help="the timeline of one payment")
    explain.add_argument("reference")
    retention = commands.add_parser("retention", help="clear who paid from payments that ended long ago")
    retention.add_argument("--older-than", type=_days, metavar="DAYS", help="default: PAYAGG_PAYER_RETENTION_DAYS")
    erase = commands.add_parser("erase", help="clear one payer from every payment that can no longer be paid")
    erase.add_argument("--email", required=True, help="the payer's address, in any letter case")
    commands.add_parser("doctor", help="check the money rules on the live database")
    anomalies = commands.add_parser("anomalies", help="list, acknowledge and close what moved no payment")
    steps = anomalies.add_subparsers(dest="action", required=True)
    listed = steps.add_parser("list", help="newest first")
    listed.add_argument("--status", choices=("OPEN", "ACKNOWLEDGED", "CLOSED"))
    listed.add_argument("--kind", choices=[kind.value for kind in AnomalyKind])
    listed.add_argument("--reference")
    listed.add_argument("--after", metavar="ID", help="the last id of the page before")
    listed.add_argument("--limit", type=_count, default=50)
    acknowledge = steps.add_parser("acknowledge", help="somebody looks at it")
    close = steps.add_parser("close", help="it is worked off")
    close.add_argument("--reason", required=True, help="what was done")
    for step in (acknowledge, close):
        step.add_argument("id")
        step.add_argument("--by", required=True, metavar="SUB")
    commands.add_parser("keygen", help="print new secrets as lines of an environment file")
    commands.add_parser("config", help="each setting in force, and where it comes from")
    described = commands.add_parser("openapi", help="print the API's description")
    described.add_argument("--audience", choices=("merchant", "admin", "payer", "provider", "client"))
    return parser


def _commands() -> dict[str, Command]:
    from payagg.entrypoints.cli import configuration, operators, tokens

    return {
        "dev": _dev,
        "serve": _serve,
        "worker": _worker,
        "migrate": operators.migrate,
        "token": tokens.token,
        "business": operators.business,
        "audit": operators.audit,
        "explain": operators.explain,
        "retention": operators.retention,
        "erase": operators.erase,
        "doctor": operators.doctor,
        "anomalies": operators.anomalies,
        "keygen": configuration.keygen,
        "config": configuration.config,
        "openapi": operators.openapi,
    }


def _dev(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.adapters.system import SystemEntropy
    from payagg.entrypoints.cli.database import database, destroy
    from payagg.entrypoints.dev.run import Outside, dev

    # Somebody else's database is migrated too, as `dev` is for trying things out.
    outside = Outside(SystemEntropy(settings.reference_prefix), partial(database, migrating=True), destroy)
    dev(settings, outside, port=options.port, fresh=options.fresh, as_json=options.json)
    return 0


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.entrypoints.process import http_server, server, supervisor

    if options.host not in LOOPBACK and not os.environ.get("PAYAGG_BASE_URL"):
        raise SettingsError(
            f"PAYAGG_BASE_URL is required to serve on {options.host}: payers' browsers must reach the links it begins."
        )
    with _serving(settings, partial(http_server.listen, options.host, options.port)) as (url, listener):
        if options.workers == 1:
            server.run(server.run_process(settings, url, listener, with_worker=not options.no_worker))
        else:
            environ = {name: value for name, value in os.environ.items() if name != "PAYAGG_DATABASE_URL_FILE"}
            environ["PAYAGG_DATABASE_URL"] = url
            server.run(
                supervisor.supervise(
                    settings, url, listener, options.workers, with_worker=not options.no_worker, environ=environ
                )
            )
    return 0


def _worker(_: argparse.Namespace, settings: Settings) -> int:
    from payagg.entrypoints.process import server

    with _serving(settings, lambda: None) as (url, _listener):
        server.run(server.run_process(settings, url, None, with_worker=True))
    return 0


@contextmanager
def _serving(settings: Settings, listen: Callable[[], Listener]) -> Iterator[tuple[str, Listener]]:
    """What every server needs before it starts: settings fit for it, logs, its socket, and a database, which it names
    aloud, since serving on the wrong one looks like having lost everything. Until the schema is current it waits."""
    import structlog

    from payagg.entrypoints.bootstrap import check_for_serving
    from payagg.entrypoints.cli.database import database
    from payagg.entrypoints.process.logs import configure_logs

    check_for_serving(settings)
    configure_logs()
    listener = listen()
    with database(settings, any_schema=True, tell=structlog.get_logger("payagg.database").warning) as url:
        yield url, listener


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _days(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 <= int(text) <= DAYS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of days from 0 to {DAYS_MAX}")
    return int(text)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
