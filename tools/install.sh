#!/bin/sh
# Makes .venv and installs what the lock file $1 names, checked by hash. Does nothing when that is already done.
set -eu
lock=$1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_REQUIRE_VIRTUALENV=0

fits() { "$1" -c 'import sys; sys.exit(not sys.version_info >= (3, 11))' >/dev/null 2>&1; }

# The development lock holds all of the other, so either serves `make run`.
state() { echo "$(pwd) $(cksum <"$1") $(cksum <tools/install.sh)"; }
for made in "$lock" requirements-dev.lock; do
    stamp=.venv/$made.installed
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(state "$made")" ] && fits .venv/bin/python; then exit 0; fi
done

python=
for candidate in python3.13 python3.12 python3.11 python3; do
    if fits "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
    echo "payagg needs Python 3.11 or newer; found $(python3 --version 2>/dev/null || echo none). Install it and run make again." >&2
    exit 1
fi

# A folder that was moved, or whose Python is gone, is made anew.
if ! fits .venv/bin/python || [ "$(cat .venv/.place 2>/dev/null)" != "$(pwd)" ]; then
    rm -rf .venv
    echo "Making .venv with $("$python" --version) ..."
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # Debian keeps ensurepip in a package of its own; a pip outside can fill the folder as well.
        rm -rf .venv
        "$python" -m venv --without-pip .venv
    fi
    pwd >.venv/.place
fi
if .venv/bin/python -m pip --version >/dev/null 2>&1; then
    pip() { .venv/bin/python -m pip "$@"; }
elif "$python" -m pip --version >/dev/null 2>&1; then
    pip() { "$python" -m pip --python .venv/bin/python "$@"; }
else
    echo "payagg needs pip: install it for $python (on Debian: apt install python3-pip) and run make again." >&2
    exit 1
fi

total=$(grep -c '^[a-z0-9].*==' "$lock")
echo "Installing $total packages from $lock (once; later starts skip this) ..."
log=.venv/install.log
if [ -t 1 ]; then line='\r'; else line='\n'; fi
{ pip install --progress-bar off --no-deps --require-hashes -r "$lock" 2>&1 && echo done-well; } | tee "$log" | awk -v total="$total" -v line="$line" '
    /^Collecting |^Requirement already/ { n++; if (line == "\r" || n % 20 == 0) { printf "  %d of %d" line, n, total; fflush() } }
    /^Installing collected/ { printf "  unpacking ...          " line; fflush() }'
if [ -t 1 ]; then printf '\r                              \r'; fi
if ! tail -n 1 "$log" | grep -q done-well; then
    grep -E '^ *(ERROR|error)' "$log" >&2 || tail -n 5 "$log" >&2
    echo "The packages could not be installed; the whole story is in $log." >&2
    exit 1
fi
# The package itself is used from where it lies: what `git pull` brings is there at the next start.
echo "$(pwd)/src" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/payagg.pth"
for command in payagg payagg-testing; do
    module=$(echo "$command" | tr - .)
    printf '#!/bin/sh\nexec "%s/.venv/bin/python" -m %s "$@"\n' "$(pwd)" "$module" >".venv/bin/$command"
    chmod +x ".venv/bin/$command"
done
state "$lock" >".venv/$lock.installed"
