#!/bin/sh
# The unit tests on every Python of this machine that we say to run on, each in an environment of its own under .pythons.
set -eu
tried=
for version in 3.11 3.12 3.13 3.14; do
    for python in "$HOME/.pyenv/versions/$version".*/bin/python "/usr/bin/python$version" "/usr/local/bin/python$version"; do
        [ -x "$python" ] || continue
        sh tools/install.sh requirements-dev.lock ".pythons/$version" "$python"
        echo "== Python $version"
        ".pythons/$version/bin/python" -m pytest -q -n 2 "${@:-tests/unit}"
        tried="$tried $version"
        break
    done
done
echo "Tried:${tried:- none}"
