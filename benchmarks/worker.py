"""The product's worker, allowed to reach a receiver on loopback as `dev` is."""

import asyncio
import os
import signal
from dataclasses import replace

from payagg.application.worker import run
from payagg.entrypoints.bootstrap import running
from payagg.entrypoints.process.server import run as serve
from payagg.entrypoints.process.server import step_back
from payagg.entrypoints.settings import read_settings


async def main() -> None:
    settings = replace(read_settings(os.environ), dev=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    step_back()
    async with running(settings, os.environ["PAYAGG_DATABASE_URL"]) as services:
        await run(services, stop)


if __name__ == "__main__":
    serve(main())
