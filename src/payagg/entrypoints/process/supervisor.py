"""`--workers N`: N equal processes on one socket, for `serve` one worker process too, kept alive and restarted
gracefully. uvicorn's `Multiprocess` starts children of one kind only, and the command must work without systemd or an
orchestrator; under one, `serve --no-worker` and `worker` replace it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import structlog
import uvloop

from payagg.application.ports.outside import Unavailable
from payagg.entrypoints.process.logs import configure_logs
from payagg.entrypoints.process.server import RESTART_SECONDS, STOP_SECONDS, run_process, stop_on_signals
from payagg.entrypoints.process.waiting import schema_awaited
from payagg.entrypoints.settings import Settings, SettingsError, read_settings

START_SECONDS = 60.0
READY = b"ready\n"
_log = structlog.get_logger("payagg.supervisor")


async def supervise(
    settings: Settings,
    database_url: str,
    listener: socket.socket,
    workers: int,
    *,
    with_worker: bool,
    environ: Mapping[str, str],
) -> None:
    """The processes of `serve`, until SIGINT or SIGTERM, once the schema is current. `environ` is theirs. SIGHUP
    replaces each by a new one that is ready before the old one stops. Raises SettingsError when one does not start the
    first time: whoever connects would wait in vain, as at a setting that is wrong."""
    draining = asyncio.Event()
    stop = stop_on_signals(draining=draining, delay=settings.shutdown_delay.total_seconds())
    if not await schema_awaited(settings, database_url, listener, stop):
        return
    roles = ["web"] * workers + (["worker"] if with_worker else [])
    replacing = [asyncio.Event() for _ in roles]

    def replace_all() -> None:
        for event in replacing:
            event.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, replace_all)
    keeper = ProcessKeeper(listener, environ, stop, draining)
    kept = (keeper.keep(role, event) for role, event in zip(roles, replacing, strict=True))
    for failure in await asyncio.gather(_close_after(listener, stop), *kept):
        if failure is not None:
            raise failure


async def _close_after(listener: socket.socket, stop: asyncio.Event) -> None:
    """Who connects after the stop is refused at once: in a queue that we alone hold open nobody would be answered."""
    await stop.wait()
    listener.close()


@dataclass(frozen=True)
class ProcessKeeper:
    """`stop` ends every process; `draining` comes some seconds before, when they are to say that they are not ready."""

    listener: socket.socket
    environ: Mapping[str, str]
    stop: asyncio.Event
    draining: asyncio.Event

    @property
    def _is_over(self) -> bool:
        return self.stop.is_set() or self.draining.is_set()

    async def keep(self, role: str, replace: asyncio.Event) -> SettingsError | None:
        """One process of `role` until the stop: started again when it dies, and another one when told to replace it.
        Where the first one does not start, stops them all and returns why."""
        process, was_ready = None, False
        while not self._is_over:
            try:
                started = await self._start(role)
            except (OSError, SettingsError) as error:
                if not self._is_over and not was_ready:
                    self.stop.set()
                    return SettingsError(str(error))
                if not self._is_over:
                    _log.error("not started", role=role, reason=str(error))
                    await self._until_over(asyncio.sleep(RESTART_SECONDS))
                continue
            was_ready = True
            if process is not None:
                await _end(process)
            process = started
            await self._until_over(replace.wait(), process.wait())
            if process.returncode is not None and not self._is_over:
                _log.error("died", role=role, status=process.returncode)
                process = None
                await self._until_over(asyncio.sleep(RESTART_SECONDS))
            replace.clear()
        if process is not None:
            if not self.stop.is_set():
                _tell(process, signal.SIGTERM)
                await _either(self.stop.wait(), process.wait())
            await _end(process)
        return None

    async def _until_over(self, *waits: Coroutine[Any, Any, Any]) -> None:
        await _either(self.stop.wait(), self.draining.wait(), *waits)

    async def _start(self, role: str) -> asyncio.subprocess.Process:
        """A process that is ready. Raises SettingsError for one that is not in time, or not before the stop."""
        descriptor = self.listener.fileno()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            role,
            str(descriptor),
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that we died
            stdout=asyncio.subprocess.PIPE,
            pass_fds=(descriptor,),
            # Ctrl-C is for us; we end the children in order. Not a session of its own: in Linux (sched_autogroup) the
            # worker's step back would then weigh against nobody.
            preexec_fn=os.setpgrp,
            env=dict(self.environ),
        )
        assert process.stdout is not None
        said = asyncio.create_task(process.stdout.readline())
        try:
            await self._until_over(asyncio.wait((said,)), asyncio.sleep(START_SECONDS))
            if not said.done() or said.result() != READY:
                raise SettingsError(f"A {role} process was not ready; its own line says why.")
        except BaseException:
            said.cancel()
            await _end(process, signal.SIGTERM)  # which it need not have learnt to handle
            raise
        return process


def _tell(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


async def _end(process: asyncio.subprocess.Process, number: signal.Signals = signal.SIGINT) -> None:
    """By SIGINT it stops at once: one that is replaced need not drain, as the others answer on the same socket."""
    _tell(process, number)
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


def handed_down(descriptor: int) -> tuple[socket.socket, asyncio.Event]:
    """In a process that ProcessKeeper started: the socket to answer on, and an event that its parent's end sets."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), stop.set)
    listener = socket.socket(fileno=descriptor)
    listener.setblocking(False)
    return listener, stop


def tell_ready() -> None:
    os.write(sys.stdout.fileno(), READY)


async def _child(role: str, descriptor: int) -> None:
    listener, stop = handed_down(descriptor)
    settings = read_settings(os.environ)
    assert settings.database_url is not None
    # Silently: the processes that this one may be to replace answer on the same socket.
    if not await schema_awaited(settings, settings.database_url, None, stop_on_signals(stop)):
        return
    serving = listener if role == "web" else None
    await run_process(
        settings, settings.database_url, serving, with_worker=role == "worker", stop=stop, ready=tell_ready
    )


if __name__ == "__main__":
    configure_logs()
    try:
        uvloop.run(_child(sys.argv[1], int(sys.argv[2])))
    except (SettingsError, Unavailable) as error:
        # A file that was changed since the command started is for a person; a database comes back.
        is_away = isinstance(error, Unavailable)
        (_log.warning if is_away else _log.error)("cannot start", role=sys.argv[1], reason=str(error))
        sys.exit(1)
