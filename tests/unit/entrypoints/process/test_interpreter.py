import platform

import pytest

from payagg.entrypoints.process.interpreter import interpreter, is_optimised, is_shared

SCHEMES = ("posix_prefix", "venv")


@pytest.mark.parametrize(
    ("variables", "schemes", "optimised", "shared"),
    [
        ({"CONFIG_ARGS": "'--enable-shared'", "Py_ENABLE_SHARED": 1}, SCHEMES, False, True),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'", "Py_ENABLE_SHARED": 0}, SCHEMES, True, False),
        ({"PY_CORE_CFLAGS": "-O3 -fprofile-use -std=c11"}, SCHEMES, True, False),
        ({"PY_CORE_CFLAGS": "-O3 -flto=auto"}, SCHEMES, True, False),
        ({"CONFIG_ARGS": "'--enable-shared'", "Py_ENABLE_SHARED": 1}, (*SCHEMES, "deb_system"), True, False),
        ({}, SCHEMES, False, False),
    ],
    ids=["pyenv's", "an image's", "by a profile", "across files", "Debian's", "one that tells nothing"],
)
def test_a_build_is_told_by_its_options(
    variables: dict[str, object], schemes: tuple[str, ...], optimised: bool, shared: bool
) -> None:
    assert is_optimised(variables.get, schemes) is optimised
    assert is_shared(variables.get, schemes) is shared


def test_the_interpreter_is_named_with_its_build() -> None:
    assert interpreter().startswith(f"CPython {platform.python_version()}, ")
    assert ("not optimised" in interpreter()) is not is_optimised()
