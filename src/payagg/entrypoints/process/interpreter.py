"""Which Python runs here and how it was built: one without its compiler's optimisations needs 1.15 to 1.3 times the CPU
for each request. `tools/install.sh` runs this file with each Python that it finds, so it imports the standard library
alone."""

import sys
import sysconfig
from collections.abc import Callable, Collection
from importlib.util import find_spec
from typing import Any

OPTIMISED = ("--enable-optimizations", "--with-lto", "-fprofile-use", "-flto")
DEBIAN = "deb_system"  # an install scheme that only its Pythons have


def is_optimised(
    variable: Callable[[str], Any] = sysconfig.get_config_var,
    schemes: Collection[str] = sysconfig.get_scheme_names(),
) -> bool:
    """Whether it was built with what a profile says (PGO) or across its files (LTO). Debian does both, and takes the
    trace of it out of what `sysconfig` tells."""
    flags = f"{variable('CONFIG_ARGS')} {variable('PY_CORE_CFLAGS')}"
    return DEBIAN in schemes or any(flag in flags for flag in OPTIMISED)


def is_shared(
    variable: Callable[[str], Any] = sysconfig.get_config_var,
    schemes: Collection[str] = sysconfig.get_scheme_names(),
) -> bool:
    """Whether the interpreter is in a library of its own. Debian builds one beside its program, which does without."""
    return DEBIAN not in schemes and bool(variable("Py_ENABLE_SHARED"))


def interpreter() -> str:
    """As in "CPython 3.13.1, optimised, shared library"."""
    version = ".".join(map(str, sys.version_info[:3]))
    build = "optimised" if is_optimised() else "not optimised"
    name = "CPython" if sys.implementation.name == "cpython" else sys.implementation.name
    return f"{name} {version}, {build}{', shared library' if is_shared() else ''}"


if __name__ == "__main__":
    # How good it is to install with: whether packages can be had counts for more than its build.
    sys.stdout.write(f"{1 + 2 * any(map(find_spec, ('pip', 'ensurepip'))) + is_optimised()} {interpreter()}\n")
