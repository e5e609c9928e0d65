"""The small commands: each prints its answer and returns the exit status."""

import argparse
import asyncio
import getpass
import json
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from payagg.domain.audit import Actor, ActorRealm
from payagg.domain.business import SUBJECT_MAX
from payagg.domain.errors import invalid
from payagg.entrypoints.cli.database import database, database_as_it_is
from payagg.entrypoints.extensions import parts
from payagg.entrypoints.settings import Settings, SettingsError

T = TypeVar("T")
U = TypeVar("U")


def operator(name: str | None = None) -> Actor:
    """The person who runs this command: the given name, or the operating system's account, on this host."""
    if name is None:
        try:
            name = getpass.getuser()
        except (OSError, KeyError):  # an account without a name, as in some containers
            name = str(os.getuid())
    elif not 0 < len(name) <= SUBJECT_MAX or not name.isprintable():
        raise invalid("by", f"Must be 1 to {SUBJECT_MAX} printable characters.")
    return Actor(ActorRealm.CLI, name, socket.gethostname())


def migrate(options: argparse.Namespace, settings: Settings) -> int:
    if options.dry_run:
        from payagg.adapters.postgres.migrations.upgrade import plan_migrations

        with database_as_it_is(settings) as url:
            plans = plan_migrations(url)
            for revision, subject, statements in plans:
                say(f"-- {revision}: {subject}\n{statements}\n")
        if not plans:
            say("Nothing is pending.")
        return 0
    from payagg.adapters.postgres.partitions import make_patiently
    from payagg.adapters.system import SystemClock

    with database(settings, migrating=True, tell=say) as url:
        made = make_patiently(url, settings.reference_prefix, SystemClock().now(), say)
        if made:
            say(f"Events have partitions for {made} more weeks.")
        say("The schema is up to date.")
    return 0


def business(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.accounts.businesses import Businesses
    from payagg.domain.business import BusinessStatus, KycStatus, Role

    async def act(businesses: Businesses) -> dict[str, str]:
        by = operator()
        if options.action == "create":
            made = await businesses.create(
                options.name,
                options.owner,
                KycStatus(options.kyc or "NOT_SUBMITTED"),
                BusinessStatus(options.status or "ACTIVE"),
                by=by,
            )
            return {"id": made.id}
        if options.action == "member" and options.remove:
            await businesses.remove_member(options.id, options.sub, by=by)
            return {"id": options.id, "sub": options.sub}
        if options.action == "member":
            await businesses.set_member(options.id, options.sub, Role(options.role), by=by)
            return {"id": options.id, "sub": options.sub, "role": options.role}
        kyc = KycStatus(options.kyc) if options.kyc else None
        status = BusinessStatus(options.status) if options.status else None
        changed = await businesses.change(options.id, kyc, status, by=by)
        return {"id": changed.id, "kyc": changed.kyc_status.value, "status": changed.status.value}

    say(json.dumps(with_use_case(settings, Businesses, act)))
    return 0


def audit(options: argparse.Namespace, settings: Settings) -> int:
    import msgspec

    from payagg.application.accounts.audit import AuditTrail, line_of
    from payagg.application.schemas.views import check_after
    from payagg.domain.audit import AuditFilter
    from payagg.domain.payment_search import parse_range

    check_after(options.after, "aud", "an entry's id, as the last line of a page names it")
    since, until = parse_range(options.since, options.until)
    wanted = AuditFilter(
        business_id=options.business,
        subject=options.subject,
        object_id=options.object,
        action=options.action,
        since=since,
        until=until,
    )
    page = with_store(settings, lambda store: AuditTrail(store).page(wanted, options.after, options.limit))
    if options.json:
        say(msgspec.json.encode(page).decode())
        return 0
    for entry in page.entries:
        say(line_of(entry))
    if page.has_more:
        say(f"There is more: --after {page.next_cursor}")
    return 0


def explain(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.reports.explain import timeline
    from payagg.domain.values import parse_reference
    from payagg.entrypoints.bootstrap import elsewhere_of, gateway_credentials

    reference = parse_reference(options.reference)
    archive = next((made(settings) for made in parts(settings.extensions, "archived_histories")), None)
    sealed = gateway_credentials(settings) if settings.encryption_keys else None
    elsewhere = elsewhere_of(settings)
    for line in with_store(settings, lambda store: timeline(store, reference, archive, sealed, elsewhere(store))):
        say(line)
    return 0


def retention(_: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.upkeep.retention import Retention
    from payagg.domain.delivery import RETENTION

    age = settings.payer_retention

    async def act(ends: Retention) -> tuple[int, int]:
        cleared, emptied = await ends.clear_payers(age, by=operator()), 0
        while done := await ends.empty_inbox():
            emptied += done
        return cleared, emptied

    cleared, emptied = with_use_case(settings, Retention, act)
    say(f"{cleared} payments that ended more than {age.days} days ago: who paid is cleared.")
    say(f"{emptied} provider events older than {RETENTION.days} days: their bodies are emptied.")
    return 0


def reseal(options: argparse.Namespace, settings: Settings) -> int:
    """A line for each kind of sealed data, with the keys that seal it. Exit status 1 when a blob is still under another
    key: it does not open, or a server with another first key just wrote it."""
    from payagg.adapters.security import AesVault
    from payagg.application.ports.upkeep import SealedKind
    from payagg.application.upkeep.reseal import Reseal, Resealed

    if not settings.encryption_keys:
        raise SettingsError(
            "PAYAGG_ENCRYPTION_KEYS is required: its first key is what everything is to be sealed under."
        )
    vault = AesVault(settings.encryption_keys)
    known = {kid for kid, _ in settings.encryption_keys}
    words = {
        SealedKind.GATEWAY_CREDENTIALS: "gateway credentials",
        SealedKind.REPLACED_SECRETS: "replaced signing secrets",
        SealedKind.ENDPOINT_CURRENT: "webhook secrets",
        SealedKind.ENDPOINT_PREVIOUS: "previous webhook secrets",
    }

    async def act(use: Reseal) -> tuple[Resealed, dict[SealedKind, Counter[str]]]:
        done = Resealed() if options.dry_run else await use.run(by=operator())
        return done, await use.count_by_key()

    done, counted = with_use_case(settings, partial(Reseal, vault=vault), act)
    for kind, name in words.items():
        keys = [
            f"{count} under {key}" + ("" if key in known else ", which is not in PAYAGG_ENCRYPTION_KEYS")
            for key, count in sorted(counted[kind].items())
        ]
        told = [f"{done.moved[kind]} sealed anew"] if not options.dry_run else []
        if done.closed[kind]:
            told.append(f"{done.closed[kind]} do not open")
        say(f"{name}: {'; '.join([*told, *keys]) or 'none'}")
    others = sum(number for keys in counted.values() for key, number in keys.items() if key != vault.sealing_key)
    if others:
        say(f"{others} are not under {vault.sealing_key}, the first key.")
    else:
        say(f"Everything is under {vault.sealing_key}, the first key.")
    return 1 if others and not options.dry_run else 0


def disclose(options: argparse.Namespace, settings: Settings) -> int:
    import msgspec

    from payagg.application.upkeep.disclosure import Disclosures

    made = with_use_case(settings, Disclosures, lambda use: use.make(options.email, by=operator()))
    say(msgspec.json.format(msgspec.json.encode(made), indent=2).decode())
    return 0


def erase(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.upkeep.retention import Retention

    done = with_use_case(settings, Retention, lambda use: use.erase(options.email, by=operator()))
    say(f"{done.cleared} payments: who paid is cleared.")
    if done.waiting:
        say(f"{done.waiting} payments can still be paid: erase again when their hour is over.")
    return 0


def anomalies(options: argparse.Namespace, settings: Settings) -> int:
    from payagg.application.ports.reports import AnomalyFilter
    from payagg.application.reports.anomalies import Anomalies, line_of
    from payagg.application.schemas.views import check_after
    from payagg.domain.anomaly import AnomalyKind, AnomalyStatus, Severity
    from payagg.domain.values import parse_reference

    async def act(use: Anomalies) -> list[str]:
        if options.action == "list":
            shown, last, has_more = await use.list_anomalies(anomaly_filter(), options.limit)
            lines = [line_of(one, use.clock.now()) for one in shown]
            return [*lines, f"There is more: --after {last}"] if has_more else lines
        by = operator(options.by)
        if options.action == "acknowledge":
            done = await use.acknowledge(options.id, by=by)
        elif options.action == "assign":
            done = await use.assign(options.id, options.to, by=by)
        elif options.action == "note":
            done = await use.note(options.id, options.text, by=by)
        else:
            done = await use.close(options.id, options.reason, by=by)
        return [line_of(done, use.clock.now())]

    def anomaly_filter() -> AnomalyFilter:
        check_after(options.after, "anm", "an anomaly's id, as the last line of a page names it")
        return AnomalyFilter(
            status=AnomalyStatus(options.status) if options.status else None,
            kind=AnomalyKind(options.kind) if options.kind else None,
            reference=parse_reference(options.reference) if options.reference else None,
            after=options.after,
            severity=Severity(options.severity) if options.severity else None,
            assignee=options.assignee,
        )

    for line in with_use_case(settings, Anomalies, act):
        say(line)
    return 0


def openapi(_: argparse.Namespace, settings: Settings) -> int:
    from payagg.entrypoints.http.docs.description import describe

    say(json.dumps(describe(settings), indent=2))
    return 0


def with_store(settings: Settings, work: Callable[[Any], Awaitable[T]]) -> T:
    async def run(url: str) -> T:
        async with store_at(url, settings) as store:
            return await work(store)

    with database(settings) as url:
        return asyncio.run(run(url))


@asynccontextmanager
async def store_at(url: str, settings: Settings) -> AsyncIterator[Any]:
    """A store of one connection."""
    from payagg.adapters.postgres.store import PostgresStore

    store = PostgresStore(url, pool_size=1, pgbouncer=settings.pgbouncer)
    try:
        yield store
    finally:
        await store.close()


def with_use_case(settings: Settings, make: Callable[[Any, Any, Any], U], work: Callable[[U], Awaitable[T]]) -> T:
    """`work` with the use case over the store, the database's clock and our randomness."""
    from payagg.adapters.system import DatabaseClock, SystemEntropy

    async def act(store: Any) -> T:
        clock = DatabaseClock(store.now)
        await clock.synchronise()
        return await work(make(store, clock, SystemEntropy(settings.reference_prefix)))

    return with_store(settings, act)


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201
