"""`payagg token`: issuing bearer tokens, and revoking them."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from payagg.application.ports.outside import Unavailable
from payagg.entrypoints.cli.operators import operator, say, with_use_case
from payagg.entrypoints.settings import Settings, SettingsError


def token(options: argparse.Namespace, settings: Settings) -> int:
    return _revoke(options, settings) if options.realm == "revoke" else _issue(options, settings)


DEV_JWT_KEY = Path("secrets", "jwt.pem")  # made by `dev`, under the state folder
TRAIL_SECONDS = 0.5  # the longest wait for the database


def _issue(options: argparse.Namespace, settings: Settings) -> int:
    """Prints a token, after adding an entry to the audit trail of the database in PAYAGG_DATABASE_URL.

    A database that is down or slow does not stop it: the command must answer in under 1.5 s and may be needed because
    of that fault. The token is printed, and a line on stderr says that it is not in the trail. Without a database, as
    in development, there is no entry: the embedded one is not started.
    """
    from payagg.adapters.system import SystemClock
    from payagg.domain.business import check_subject
    from payagg.entrypoints.bootstrap import tokens_of

    check_subject(options.sub, "sub")
    tokens = tokens_of(_with_dev_key(settings))
    if options.ttl > settings.token_lifetime_max.total_seconds():
        raise SettingsError(
            f"--ttl must be at most {settings.token_lifetime_max.total_seconds():.0f}, the PAYAGG_TOKEN_LIFETIME_MAX of"
            " the servers: they refuse a token that lives longer."
        )
    claims: dict[str, Any] = {"sub": options.sub, "type": options.realm}
    if options.realm == "admin":
        claims["role"] = options.role
    else:
        claims["emailVerified"] = not options.no_email_verified
    try:
        issued = tokens.issue(claims, options.ttl, int(SystemClock().now().timestamp()))
    except ValueError as error:
        raise SettingsError(f"PAYAGG_JWT_KEY cannot be used: {error}.") from None
    if settings.database_url is not None:
        try:
            asyncio.run(_record(settings, settings.database_url, tokens.read(issued)))
        except Exception as error:  # noqa: BLE001 - no fault of the database may withhold a token
            reason = _reason(error, settings.database_url)
            print(f"payagg: The token is not in the audit trail: {' '.join(reason.split())}.", file=sys.stderr)  # noqa: T201
    say(issued)
    return 0


def _with_dev_key(settings: Settings) -> Settings:
    """The settings with a key that signs tokens; without one, the key of `dev` in this state folder.

    Raises SettingsError when there is neither.
    """
    path = settings.state_dir / DEV_JWT_KEY
    if settings.jwt_key is not None:
        return settings
    if not path.exists():
        raise SettingsError(
            "PAYAGG_JWT_KEY is required: the key that signs tokens (`payagg dev` makes one of its own)."
        )
    return replace(settings, jwt_key=path.read_text(), jwt_algorithm="EdDSA")


async def _record(settings: Settings, database_url: str, claims: Mapping[str, Any]) -> None:
    """Raises TimeoutError, Unavailable, or what a database without our schema does."""
    from datetime import UTC, datetime

    from payagg.adapters.postgres.store import PostgresStore
    from payagg.adapters.system import DatabaseClock, SystemEntropy
    from payagg.application.use_case import UseCase
    from payagg.domain.audit import Action

    facts = {
        "realm": claims["type"],
        "subject": claims["sub"],
        "role": claims.get("role"),
        "expiresAt": f"{datetime.fromtimestamp(claims['exp'], UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    changes = {name: {"before": None, "after": value} for name, value in facts.items() if value is not None}
    entropy = SystemEntropy(settings.reference_prefix)
    store = PostgresStore(database_url, pool_size=1, pgbouncer=settings.pgbouncer)
    async with asyncio.timeout(TRAIL_SECONDS):
        clock = DatabaseClock(store.now)
        await clock.synchronise()
        async with store.begin() as tx:
            await UseCase(store, clock, entropy).record(tx, operator(), Action.TOKEN_ISSUE, claims["jti"], changes)
        await store.close()


def _reason(error: Exception, database_url: str) -> str:
    """Why there is no entry: a fault of the connection by its name, as other commands tell it."""
    from payagg.adapters.postgres.connections import ensure_reachable

    if isinstance(error, TimeoutError):
        return f"no answer within {TRAIL_SECONDS} s"
    try:
        ensure_reachable(database_url)
    except Unavailable as fault:
        return str(fault)
    return str(error)


def _revoke(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.accounts.access import TokenRevocations
    from payagg.domain.revocation import RevokedClaim

    claim, value = (RevokedClaim.SUBJECT, options.sub) if options.id is None else (RevokedClaim.TOKEN, options.id)

    done = with_use_case(settings, TokenRevocations, lambda use: use.revoke(claim, value, by=operator()))
    if claim is RevokedClaim.TOKEN:
        say(f"The token {value} is refused from now on.")
    else:
        say(f"Tokens of {value} issued before {done.issued_before:%Y-%m-%dT%H:%M:%SZ} are refused from now on.")
    return 0
