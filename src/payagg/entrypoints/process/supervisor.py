"""`serve --workers N`: N equal processes on one socket and one worker process, kept alive and restarted gracefully."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

import structlog

from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import RESTART_SECONDS, STOP_SECONDS, run, run_process, stop_on_signals
from payagg.entrypoints.settings import SettingsError, read_settings

START_SECONDS = 60.0
READY = b"ready\n"
_log = structlog.get_logger("payagg.supervisor")


async def supervise(listener: socket.socket, workers: int, *, with_worker: bool, environ: Mapping[str, str]) -> None:
    """Until SIGINT or SIGTERM. SIGHUP replaces each process by a new one that is ready before the old one stops."""
    stop = stop_on_signals()
    roles = ["web"] * workers + (["worker"] if with_worker else [])
    replacing = [asyncio.Event() for _ in roles]

    def replace_all() -> None:
        for event in replacing:
            event.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, replace_all)
    keepers = [_keep(role, listener, environ, stop, event) for role, event in zip(roles, replacing, strict=True)]
    await asyncio.gather(*keepers)


async def _keep(
    role: str, listener: socket.socket, environ: Mapping[str, str], stop: asyncio.Event, replace: asyncio.Event
) -> None:
    process = None
    while not stop.is_set():
        try:
            started = await _start(role, listener, environ)
        except (OSError, SettingsError, TimeoutError):
            _log.exception("not started", role=role)
            await _either(stop.wait(), asyncio.sleep(RESTART_SECONDS))
            continue
        if process is not None:
            await _end(process)
        process = started
        await _either(stop.wait(), replace.wait(), process.wait())
        if process.returncode is not None and not stop.is_set():
            _log.error("died", role=role, status=process.returncode)
            process = None
            await _either(stop.wait(), asyncio.sleep(RESTART_SECONDS))
        replace.clear()
    if process is not None:
        await _end(process)


async def _start(role: str, listener: socket.socket, environ: Mapping[str, str]) -> asyncio.subprocess.Process:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "payagg.entrypoints.process.supervisor",
        role,
        str(listener.fileno()),
        stdin=asyncio.subprocess.PIPE,  # its end tells the child that we died
        stdout=asyncio.subprocess.PIPE,
        pass_fds=(listener.fileno(),),
        # Ctrl-C is for us; we end the children in order. Not a session of its own: in Linux (sched_autogroup) the
        # worker's step back would then weigh against nobody.
        preexec_fn=os.setpgrp,
        env=dict(environ),
    )
    assert process.stdout is not None
    try:
        if await asyncio.wait_for(process.stdout.readline(), START_SECONDS) != READY:
            raise SettingsError(f"A {role} process ended at its start.")
    except BaseException:
        await _end(process)
        raise
    return process


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _either(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.create_task(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def _child(role: str, descriptor: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)
    settings = read_settings(os.environ)
    assert settings.database_url is not None
    listener = socket.socket(fileno=descriptor)
    listener.setblocking(False)

    def ready() -> None:
        os.write(sys.stdout.fileno(), READY)

    serving = listener if role == "web" else None
    await run_process(settings, settings.database_url, serving, with_worker=role == "worker", stop=stop, ready=ready)


if __name__ == "__main__":
    configure_logs()
    run(_child(sys.argv[1], int(sys.argv[2])))
