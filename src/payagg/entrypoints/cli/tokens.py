"""`payagg token`: issuing bearer tokens, and revoking them."""

import argparse
from typing import Any

from payagg.entrypoints.cli.operators import operator, say, with_store
from payagg.entrypoints.settings import Settings, SettingsError


def token(options: argparse.Namespace, settings: Settings) -> int:
    return _revoke(options, settings) if options.realm == "revoke" else _issue(options, settings)


def _issue(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.adapters.system import SystemClock
    from payagg.entrypoints.bootstrap import tokens_of
    from payagg.entrypoints.dev.secrets import with_dev_key

    tokens = tokens_of(with_dev_key(settings))
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
        say(tokens.issue(claims, options.ttl, int(SystemClock().now().timestamp())))
    except ValueError as error:
        raise SettingsError(f"PAYAGG_JWT_KEY cannot be used: {error}.") from None
    return 0


def _revoke(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.adapters.system import DatabaseClock, SystemEntropy
    from payagg.application.token_revocations import TokenRevocations
    from payagg.domain.revocation import Revocation, RevokedClaim
    from payagg.domain.values import parse_instant

    if options.id is not None and options.issued_before is not None:
        raise SettingsError("--issued-before goes with --sub: a token that is named is refused whenever it was issued.")
    issued_before = parse_instant(options.issued_before, "issued-before") if options.issued_before else None
    claim, value = (RevokedClaim.SUBJECT, options.sub) if options.id is None else (RevokedClaim.TOKEN, options.id)

    async def act(store: Any) -> Revocation:
        clock = DatabaseClock(store.now)
        await clock.synchronise()
        use = TokenRevocations(store, clock, SystemEntropy(settings.reference_prefix))
        return await use.revoke(claim, value, issued_before, by=operator())

    done = with_store(settings, act)
    if claim is RevokedClaim.TOKEN:
        say(f"The token {value} is refused from now on.")
    else:
        say(f"Tokens of {value} issued before {done.issued_before:%Y-%m-%dT%H:%M:%SZ} are refused from now on.")
    return 0
