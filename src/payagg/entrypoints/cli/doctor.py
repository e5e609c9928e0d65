"""`payagg doctor`: the rules of money, looked at in a live database."""

import argparse
import asyncio

from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import say
from payagg.entrypoints.settings import Settings

BRING_BACK = (
    "bring the encryption key back that sealed it (docs/operating/rotation.md): until then the gateway's payments are"
    " neither asked about nor proved, and webhooks are not signed. If it is lost, store credentials and secrets anew."
)


def doctor(_: argparse.Namespace, settings: Settings) -> int:
    from payagg.adapters.postgres.doctor import SHOWN, Finding, examine
    from payagg.adapters.providers.registry import lists_of, providers_of

    with database(settings, tell=say) as url:
        lists, providers = (of(settings.providers, allow_loopback=settings.dev) for of in (lists_of, providers_of))
        findings = examine(url, tuple(lists), tuple(providers))
        warning = None if settings.provider_networks else asyncio.run(_unnamed_providers(settings, url))
        rules = findings.rules
        if settings.encryption_keys:
            closed = asyncio.run(_closed(settings, url))
            rules = [*rules, Finding("what is sealed opens under PAYAGG_ENCRYPTION_KEYS", closed[:SHOWN], BRING_BACK)]
    for finding in rules:
        say(f"{'ok    ' if finding.is_kept else 'BROKEN'}  {finding.rule}")
        for reference in finding.breaches:
            say(f"        {reference}")
        if len(finding.breaches) == SHOWN:
            say("        There may be more.")
        if finding.breaches:
            say(f"        What to do: {finding.remedy}")
    newest = f", the newest {len(findings.anomalies)}" if findings.anomaly_count > len(findings.anomalies) else ""
    say(
        f"{findings.anomaly_count} anomalies"
        + (f" (moved nothing, not closed; `payagg anomalies` works them off){newest}:" if findings.anomalies else ".")
    )
    for anomaly in findings.anomalies:
        say(f"        {anomaly}")
    refused = findings.refused_events
    at_least = "At least " if len(refused) == SHOWN else ""
    say(f"{at_least}{len(refused)} events refused for their signature in the last hour, newest first.")
    for event in refused:
        say(f"        {event}")
    say(findings.partitions)
    if findings.clock:
        say(f"warning {findings.clock}")
    for line in findings.reconciliation:
        say(line)
    if warning:
        say(f"warning {warning}")
    return 0 if all(finding.is_kept for finding in rules) else 1


async def _closed(settings: Settings, url: str) -> list[str]:
    from payagg.adapters.postgres.store import PostgresStore
    from payagg.adapters.security import AesVault
    from payagg.adapters.system import SystemClock, SystemEntropy
    from payagg.application.upkeep.reseal import Reseal

    store = PostgresStore(url, pool_size=1, pgbouncer=settings.pgbouncer)
    try:
        vault = AesVault(settings.encryption_keys)
        use = Reseal(store, SystemClock(), SystemEntropy(settings.reference_prefix), vault)
        return [f"{kind.value} of {owner}" for kind, owner in await use.closed()]
    finally:
        await store.close()


async def _unnamed_providers(settings: Settings, url: str) -> str | None:
    """The warning for LIVE credentials without PAYAGG_PROVIDER_NETWORKS."""
    from payagg.adapters.postgres.store import PostgresStore
    from payagg.application.gateways.readiness import live_slugs
    from payagg.entrypoints.bootstrap import gateway_credentials

    store = PostgresStore(url, pool_size=1, pgbouncer=settings.pgbouncer)
    try:
        async with store.begin() as tx:
            has_credentials = any(one.has_credentials for one in await tx.gateways.everything())
        if not has_credentials:
            return None
        if not settings.encryption_keys:
            return "PAYAGG_PROVIDER_NETWORKS is not set; whether it must be needs PAYAGG_ENCRYPTION_KEYS to tell."
        live = await live_slugs(store, gateway_credentials(settings))
    finally:
        await store.close()
    return (
        f"PAYAGG_PROVIDER_NETWORKS is not set, and there are LIVE credentials of {', '.join(live)}: events past"
        f" {settings.webhook_rate_limit} a minute of one address are answered 429."
        if live
        else None
    )
