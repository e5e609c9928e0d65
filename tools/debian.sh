#!/bin/sh
# A program of the tests, from Debian: $1 the program, $2 its name for a person, $3 the package where that is called
# otherwise. Where it cannot be had, says so.
set -eu
program=$1 name=$2 package=${3:-$1}
PATH=$PATH:/usr/sbin
absent() { ! command -v "$1" >/dev/null 2>&1; }

if absent "$program" && [ "$(id -u)" = 0 ] && ! absent apt-get; then
    echo "Installing $name for the tests ..."
    # The tests start their own: with this RUNLEVEL Debian does not start its service.
    { apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends "$package"; } >/dev/null 2>&1 || true
fi
if absent "$program"; then
    if [ "${CI:-}" = true ]; then
        echo "$name could not be installed: CI does not skip its tests." >&2
        exit 1
    fi
    echo "$name is not installed: its tests are skipped (on Debian: apt install $package)."
fi
