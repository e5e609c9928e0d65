#!/bin/sh
# The unit tests and `payagg dev` on every Python of this machine that we say to run on, but for .venv's own, which has run
# them all. Each has an environment of its own under .pythons.
set -eu
# What the laboratory and the repository's own tools find is the same on each of them.
tests="tests/unit --ignore=tests/unit/lab --ignore=tests/unit/project tests/integration/process/test_dev.py"
own=$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo none)
tried=
for version in 3.14 3.13 3.12 3.11; do
    if [ "$version" = "$own" ]; then continue; fi
    for python in "$HOME/.pyenv/versions/$version".*/bin/python "/usr/bin/python$version" "/usr/local/bin/python$version"; do
        [ -x "$python" ] || continue
        sh tools/install.sh requirements-dev.lock ".pythons/$version" "$python"
        echo "== Python $version"
        ".pythons/$version/bin/python" -m pytest -q -n 2 ${@:-$tests}
        tried="$tried $version"
        # CI tries the newest alone: what holds at both ends has always held between them.
        if [ "${CI:-}" = true ]; then break 2; fi
        break
    done
done
echo "Tried beside $own:${tried:- none, as no other is here}"
