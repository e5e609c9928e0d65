"""The `payagg` command. A fault that an operator can fix is one line on stderr and exit status 1; wrong usage is 2."""

import argparse
import errno
import gc
import os
import sys
from collections.abc import Sequence

from payagg.entrypoints.cli.arguments import parser
from payagg.entrypoints.extensions import names_in
from payagg.extras import line_about


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs one command and exits with its status."""
    # While modules load nothing is garbage, and the collector's rounds are a tenth of the start.
    gc.set_threshold(20_000, 20, 50)
    whole = parser(names_in(os.environ))
    options = whole.parse_args(arguments)
    if options.command is None:
        whole.print_help()
        sys.exit(2)
    try:
        status = _run(options)
        print(end="", flush=True)  # noqa: T201 - a short answer would fail after this, with nobody to say so
    except ModuleNotFoundError as error:
        line = line_about(error, f"payagg {options.command}", "embedded" if options.command == "dev" else "server")
        if line is None:
            raise
        status = _complain(line)
    except BrokenPipeError:
        # The reader of the pipe is gone (`payagg explain ... | head`).
        _discard_output()
        status = 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _discard_output()
        status = _complain(f"Nothing more can be written: {error.strerror}.")
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def _run(options: argparse.Namespace) -> int:
    # Every command needs the packages of an extra; the parsing above needs none.
    from payagg.entrypoints.cli.commands import CommandFailed, run

    try:
        return run(options)
    except CommandFailed as failure:
        return _complain(str(failure))


def _discard_output() -> None:
    """So that the interpreter, as it ends, does not fail at what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(lines: str) -> int:
    for line in lines.splitlines():
        print(f"payagg: {line}", file=sys.stderr)  # noqa: T201
    return 1
