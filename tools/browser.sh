#!/bin/sh
# What the browser tests need: Chromium, and the npm packages that judge the pages. Where they cannot be had, says so.
set -eu
absent() { ! command -v "$1" >/dev/null 2>&1; }

if absent chromium; then
    if [ "$(id -u)" = 0 ] && ! absent apt-get; then
        echo "Installing Chromium for the browser tests ..."
        { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || true
    fi
    if absent chromium; then
        if [ "${CI:-}" = true ]; then
            echo "Chromium could not be installed: CI does not skip the browser tests." >&2
            exit 1
        fi
        echo "Chromium is not installed: the browser tests are skipped (on Debian: apt install chromium)."
    fi
fi

stamp=tests/node/node_modules/.installed
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(cksum <tests/node/package-lock.json)" ]; then exit 0; fi
if absent npm; then
    if [ "${CI:-}" = true ]; then
        echo "npm is not installed: CI does not skip the tests that need its packages." >&2
        exit 1
    fi
    echo "npm is not installed: the tests that use its packages are skipped."
    exit 0
fi
echo "Installing the npm packages of the tests ..."
(cd tests/node && npm ci --ignore-scripts --no-audit --no-fund --silent --fetch-retries 5)
cksum <tests/node/package-lock.json >"$stamp"
