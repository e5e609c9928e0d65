#!/bin/sh
# The PgBouncer of the tests. Where it cannot be had, says so.
set -eu
PATH=$PATH:/usr/sbin
absent() { ! command -v "$1" >/dev/null 2>&1; }

if absent pgbouncer && [ "$(id -u)" = 0 ] && ! absent apt-get; then
    echo "Installing PgBouncer for the tests ..."
    # The tests start their own: with this RUNLEVEL Debian does not start its service.
    { apt-get update && RUNLEVEL=1 apt-get install -y --no-install-recommends pgbouncer; } >/dev/null 2>&1 || true
fi
if absent pgbouncer; then
    if [ "${CI:-}" = true ]; then
        echo "PgBouncer could not be installed: CI does not skip its tests." >&2
        exit 1
    fi
    echo "PgBouncer is not installed: its tests are skipped (on Debian: apt install pgbouncer)."
fi
