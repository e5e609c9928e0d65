"""Runs `payagg` in forks of one process that has loaded it: to load it takes longer than most commands.

A line on stdin is a command: its arguments, its environment, the files that take its output and its errors, and the
seconds it may take. The answer is its exit status.
"""

import gc
import json
import os
import signal
import sys
from importlib import import_module

from payagg.entrypoints.cli.main import main

COMMANDS = "payagg.entrypoints.cli.commands"
LOADED = (
    COMMANDS,
    "payagg.adapters.postgres.migrations.upgrade",
    "payagg.entrypoints.cli.tokens",
    "payagg.entrypoints.http.app",
    "payagg.entrypoints.http.docs.description",
    "payagg.entrypoints.process.server",
)


def next_command() -> list[str]:
    """The arguments of the command that this fork is for."""
    for line in sys.stdin:
        command = json.loads(line)
        if pid := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
            continue
        os.environ.clear()
        os.environ.update(command["environment"])
        for descriptor, path in enumerate((os.devnull, command["output"], command["errors"])):
            os.dup2(os.open(path, os.O_RDWR), descriptor)
        signal.alarm(command["seconds"])
        return list(command["arguments"])
    raise SystemExit


if __name__ == "__main__":
    for name in LOADED:
        import_module(name)
    gc.freeze()  # or a round of the collector copies every page
    try:
        main(next_command())
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))  # at once: to take all modules apart takes longer than most commands too
