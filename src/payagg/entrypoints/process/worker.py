"""The background work: deliveries, expiry, drains, wiping of secrets, inbox retries, status checks, retention,
partitions."""

import asyncio
from contextlib import suppress
from functools import partial

import structlog

from payagg.application.payments.expiry import sweep_expired
from payagg.application.ports.outside import Conflict, Unavailable
from payagg.application.telemetry import count, span, trace_of
from payagg.application.upkeep.sweeps import Sweep, keep_partitions, pull_back_instants
from payagg.entrypoints.bootstrap import Services

STOP_SECONDS = 9.0  # for a running sweep; the dispatcher has its own, shorter, grace
BACK_OFF_SECONDS = 1.0
BACK_OFF_MAX_SECONDS = 30.0
JITTER = 0.2
_log = structlog.get_logger("payagg.worker")


def sweeps(services: Services) -> list[Sweep]:
    started = services.clock.now()
    # The reconciler's rate is per run, so it does not run until dry.
    asking = [
        Sweep(
            f"reconciliation at {slug} {environment.value}",
            1.0,
            partial(services.reconciler.run_at, slug, environment, started),
            until_dry=False,
        )
        for slug, environment in services.reconciler.shares()
    ]
    store, clock, runs = services.store, services.clock, services.reconciliation_runs
    pull_back = partial(pull_back_instants, store, clock)
    partitions = partial(keep_partitions, store, clock, services.settings.reference_prefix)
    listing = [Sweep("reconciliation of yesterday", 600.0, runs.run_due, until_dry=False)] if runs.lists else []
    return [
        Sweep("expiry", 5.0, partial(sweep_expired, services.settlement)),
        Sweep("drains", 5.0, services.gateways.end_drains),
        Sweep("gateway secrets", 30.0, services.gateway_settling.wipe, until_dry=False),
        Sweep("refused events", 60.0, services.refused_events.purge),
        Sweep("inbox", 2.0, services.provider_events.retry_due, until_dry=False),
        *asking,
        Sweep("future instants", 600.0, pull_back, until_dry=False),
        Sweep("retention", 3600.0, services.retention.forget_deliveries),
        Sweep("inbox retention", 3600.0, services.retention.empty_inbox),
        Sweep("partitions", 3600.0, partitions, until_dry=False),
        *listing,
        Sweep("inbox rows retention", 3600.0, services.retention.forget_events, until_dry=False),
        Sweep("idempotency keys retention", 3600.0, services.retention.forget_keys),
        Sweep("anomalies retention", 3600.0, services.retention.forget_anomalies),
        *services.sweeps_of_extensions(),
    ]


async def run(services: Services, stop: asyncio.Event, pace: float = 1.0) -> None:
    """Runs until `stop`, then ends within ten seconds: running work is finished, the rest released.

    `pace` multiplies the time between sweeps, for a simulation that lives through days.
    """
    tasks = [asyncio.create_task(services.dispatcher.run(stop))]
    tasks += [asyncio.create_task(_sweep(services, sweep, stop, pace)) for sweep in sweeps(services)]
    waiting = asyncio.create_task(stop.wait())
    try:
        # A loop that ends by itself is a defect: it ends the worker, and the supervisor restarts it.
        done, _ = await asyncio.wait({*tasks, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if waiting in done:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
    finally:
        for task in (*tasks, waiting):
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _sweep(services: Services, sweep: Sweep, stop: asyncio.Event, pace: float) -> None:
    back_off = BACK_OFF_SECONDS
    while not stop.is_set():
        wait = sweep.seconds * pace
        try:
            with span(f"sweep {sweep.name}"):
                while await sweep.work() and sweep.until_dry and not stop.is_set():
                    pass
            back_off = BACK_OFF_SECONDS
            count("worker_sweeps", sweep.name)
        except (Unavailable, Conflict) as error:
            _log.warning("sweep postponed", sweep=sweep.name, reason=str(error))
            wait, back_off = back_off, min(back_off * 2, BACK_OFF_MAX_SECONDS)
        except Exception as error:  # noqa: BLE001 - one sweep's defect must not stop the others
            _log.error("sweep failed", sweep=sweep.name, trace=trace_of(error))
            wait, back_off = back_off, min(back_off * 2, BACK_OFF_MAX_SECONDS)
        spread = wait * (1 - JITTER + 2 * JITTER * services.entropy.chance())
        with suppress(TimeoutError):
            async with asyncio.timeout(spread):
                await stop.wait()
