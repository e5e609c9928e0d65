"""`payagg doctor`: the rules of money, looked at in a live database."""

import argparse
import asyncio
from typing import Any

from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import say, store_at
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
        closed, warning = asyncio.run(_look(settings, url))
        rules = findings.rules
        if closed is not None:
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


async def _look(settings: Settings, url: str) -> tuple[list[str] | None, str | None]:
    """What is sealed and does not open, None without keys; and the warning for LIVE credentials without
    PAYAGG_PROVIDER_NETWORKS."""
    from payagg.adapters.security import AesVault
    from payagg.adapters.system import SystemClock, SystemEntropy
    from payagg.application.upkeep.reseal import Reseal

    async with store_at(url, settings) as store:
        warning = None if settings.provider_networks else await _unnamed_providers(settings, store)
        if not settings.encryption_keys:
            return None, warning
        vault = AesVault(settings.encryption_keys)
        use = Reseal(store, SystemClock(), SystemEntropy(settings.reference_prefix), vault)
        return [f"{kind.value} of {owner}" for kind, owner in await use.closed()], warning


async def _unnamed_providers(settings: Settings, store: Any) -> str | None:
    from payagg.application.gateways.readiness import live_slugs
    from payagg.entrypoints.bootstrap import gateway_credentials

    async with store.begin() as tx:
        has_credentials = any(one.has_credentials for one in await tx.gateways.everything())
    if not has_credentials:
        return None
    if not settings.encryption_keys:
        return "PAYAGG_PROVIDER_NETWORKS is not set; whether it must be needs PAYAGG_ENCRYPTION_KEYS to tell."
    live = await live_slugs(store, gateway_credentials(settings))
    return (
        f"PAYAGG_PROVIDER_NETWORKS is not set, and there are LIVE credentials of {', '.join(live)}: events past"
        f" {settings.webhook_rate_limit} a minute of one address are answered 429."
        if live
        else None
    )
