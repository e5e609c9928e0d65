"""Known flaws of the Python that runs here, as far as they matter to a server."""

import sys

import structlog

# CVE-2024-7592: http.cookies takes quadratic time to unquote a value. The first release of each line without it.
FIXED = {(3, 11): 10, (3, 12): 6}
_log = structlog.get_logger("payagg.python")


def python_flaw(version: tuple[int, int, int] = sys.version_info[:3]) -> str | None:
    """A sentence about it, None where there is none."""
    line, release = version[:2], version[2]
    if release >= FIXED.get(line, 0):
        return None
    here, fixed = ".".join(map(str, version)), ".".join(map(str, (*line, FIXED[line])))
    return (
        f"Python {here} has a known flaw, CVE-2024-7592: reading cookies takes quadratic time. "
        f"payagg does not read them that way; use {fixed} or newer all the same."
    )


def tell_python_flaw() -> None:
    """Writes one line to the log where there is one."""
    if flaw := python_flaw():
        _log.warning("this Python has a known flaw", flaw=flaw)
