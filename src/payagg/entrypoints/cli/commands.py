"""Each command by its name, and those that serve. A fault that an operator can fix is a CommandFailed, with a line for
each.

A command imports its heavy modules itself, so small commands start at once.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from payagg.adapters.postgres.embedded import EmbeddedPostgresError
from payagg.application.ports.outside import Unavailable
from payagg.domain.errors import Refusal
from payagg.domain.report import ProviderFault
from payagg.entrypoints.cli import configuration, doctor, operators, reconciliations, tokens
from payagg.entrypoints.extensions import command_named
from payagg.entrypoints.settings import Settings, SettingsError, read_settings

Command = Callable[[argparse.Namespace, Settings], int]
Listener = TypeVar("Listener")


class CommandFailed(Exception):
    """A command's faults, a line for each."""


def run(options: argparse.Namespace) -> int:
    """The exit status of the command that `options` names; raises CommandFailed."""
    try:
        settings = read_settings(os.environ, dev=options.command == "dev")
        command = COMMANDS.get(options.command) or command_named(options.command, settings.extensions)
        status: int = command(options, settings)
        return status
    except (SettingsError, EmbeddedPostgresError) as error:
        raise CommandFailed(str(error)) from error
    except Refusal as refusal:
        raise CommandFailed(f"{refusal.field}: {refusal.message}" if refusal.field else refusal.message) from refusal
    except ProviderFault as fault:
        line = f"The provider could not be asked: {fault}. What was begun has not ended: run it again."
        raise CommandFailed(line) from fault
    except Unavailable as error:
        raise CommandFailed(f"The database cannot be used: {error}.") from error


def _dev(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.entrypoints.dev.run import dev

    dev(settings, port=options.port, fresh=options.fresh, as_json=options.json)
    return 0


def _serve(options: argparse.Namespace, settings: Settings) -> int:
    import uvloop

    from payagg.entrypoints.process import http_server, server, supervisor

    given, settings = settings, http_server.with_own_address(settings, os.environ, options.host, options.port)
    with _serving(settings, partial(http_server.listen, options.host, options.port)) as (url, listener):
        if options.workers == 1:
            uvloop.run(server.run_process(settings, url, listener, with_worker=not options.no_worker))
        else:
            # A restart reads the files of settings anew; the embedded Postgres is ours, and in none.
            own = {} if settings.database_url is not None else {"PAYAGG_DATABASE_URL": url}
            own |= {} if settings is given else {"PAYAGG_BASE_URL": settings.base_url}
            environ = {**os.environ, **own}
            uvloop.run(
                supervisor.supervise(
                    settings, url, listener, options.workers, with_worker=not options.no_worker, environ=environ
                )
            )
    return 0


def _worker(_: argparse.Namespace, settings: Settings) -> int:
    import uvloop

    from payagg.entrypoints.process import server

    with _serving(settings, lambda: None) as (url, _listener):
        uvloop.run(server.run_process(settings, url, None, with_worker=True))
    return 0


@contextmanager
def _serving(settings: Settings, listen: Callable[[], Listener]) -> Iterator[tuple[str, Listener]]:
    """What every server needs before it starts: checked settings, logs, its socket, and a database, which it prints:
    the wrong database looks like lost data. It waits until the schema is current."""
    import structlog

    from payagg.entrypoints.bootstrap import check_for_serving
    from payagg.entrypoints.cli.database import database
    from payagg.entrypoints.process.logs import configure_logs

    check_for_serving(settings)
    configure_logs()
    listener = listen()
    with database(settings, any_schema=True, tell=structlog.get_logger("payagg.database").warning) as url:
        yield url, listener


COMMANDS: dict[str, Command] = {
    "dev": _dev,
    "serve": _serve,
    "worker": _worker,
    "migrate": operators.migrate,
    "token": tokens.token,
    "business": operators.business,
    "audit": operators.audit,
    "explain": operators.explain,
    "retention": operators.retention,
    "reseal": operators.reseal,
    "disclose": operators.disclose,
    "erase": operators.erase,
    "reconcile": reconciliations.reconcile,
    "doctor": doctor.doctor,
    "anomalies": operators.anomalies,
    "keygen": configuration.keygen,
    "config": configuration.config,
    "openapi": operators.openapi,
}
