"""`payagg catch-up`: what was asked about, and what was found."""

import asyncio
from argparse import Namespace

from payagg.application.payments.status_checks import RATE
from payagg.domain.attempt import ATTEMPTS_MAX
from payagg.domain.values import parse_instant
from payagg.entrypoints.bootstrap import running
from payagg.entrypoints.cli.database import database
from payagg.entrypoints.cli.operators import operator, say
from payagg.entrypoints.settings import Settings
from payagg.extensions.catchup.catch_up import CaughtUp, catch_up_over


def catch_up(options: Namespace, settings: Settings) -> int:
    since = parse_instant(options.since, "since")

    def begun(hastened: int) -> None:
        say(f"{hastened} charges that were known are asked about as soon as a worker runs.")
        say(f"Asking each provider {ATTEMPTS_MAX} times about each payment that was open, {RATE} times a second ...")

    async def act(url: str) -> CaughtUp:
        async with running(settings, url) as services:
            return await catch_up_over(services).run(since, by=operator(), begun=begun)

    with database(settings) as url:
        done = asyncio.run(act(url))
    say(f"{done.looked_at} payments were open: {len(done.found)} charges of theirs were unknown here, and are no more.")
    for reference in done.found:
        say(f"        {reference}")
    if done.unanswered:
        say(f"{len(done.unanswered)} of their providers did not answer, or have credentials that do not open here:")
        say("run this again before servers start, with the servers' PAYAGG_ENCRYPTION_KEYS.")
        for reference in done.unanswered:
            say(f"        {reference}")
    return 1 if done.unanswered else 0
