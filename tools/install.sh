#!/bin/sh
# Makes .venv and installs what the lock file $1 names, checked by hash. Does nothing when that is already done.
# What stands in the way is one line. Another folder is $2, its Python $3.
set -eu
lock=$1 venv=${2:-.venv}
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_ROOT_USER_ACTION=ignore PIP_REQUIRE_VIRTUALENV=0
log=

fits() { "$1" -c 'import sys; sys.exit(not sys.version_info >= (3, 11))' >/dev/null 2>&1; }

# Ends with one line for what a program said. Whoever is offline sees pip say that there is no such package.
give_up() {
    case $1 in
    *"No space left"*) why="No space left on the disk of $(pwd)." ;;
    *"Read-only file system"* | *"Permission denied"*)
        why="$(pwd) cannot be written: run make as its owner, or in a copy of the folder." ;;
    *"connection broken by"* | *"(from versions: none)"*)
        why="The packages could not be fetched, as pip reaches no package index: look at the network, or at \`pip config list\`." ;;
    *) why="The packages could not be installed: $(printf '%s\n' "$1" | grep -E '^ *(ERROR|error|Error)' || printf '%s\n' "$1" | tail -n 1)" ;;
    esac
    printf '%s%s\n' "$(printf '%s' "$why" | tr '\n' ' ')" "${log:+ The whole story is in $log.}" >&2
    exit 1
}

# The development lock holds all of the other, so either serves `make run`.
state() { echo "$(pwd) $(cksum <"$1") $(cksum <tools/install.sh)"; }
for made in "$lock" requirements-dev.lock; do
    stamp=$venv/$made.installed
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(state "$made")" ] && fits "$venv/bin/python"; then exit 0; fi
done

# The best of those on PATH: one that can fetch packages, then one that its compiler optimised, then the newest that is
# tested. A shim that starts nothing is none.
python= best=0
look_at() {
    if ! fits "$1"; then return; fi
    said=$("$1" -I src/payagg/entrypoints/process/interpreter.py)
    if [ "${said%% *}" -gt "$best" ]; then best=${said%% *} python=$1 build=${said#* }; fi
}
if [ -n "${3:-}" ]; then look_at "$3"; else
    IFS=:
    for name in python3.13 python3.12 python3.11 python3.14 python3; do
        for folder in $PATH; do if [ -x "$folder/$name" ]; then look_at "$folder/$name"; fi; done
    done
    unset IFS
fi
if [ -z "$python" ]; then
    echo "payagg needs Python 3.11 or newer; found $(python3 --version 2>/dev/null || echo none). Install it and run make again." >&2
    exit 1
fi

said=$({ mkdir -p "$venv" && : >"$venv/.writable" && rm "$venv/.writable"; } 2>&1) || give_up "$said"
# A folder that was moved, or whose Python is gone, is made anew.
if ! fits "$venv/bin/python" || [ "$(cat "$venv/.place" 2>/dev/null)" != "$(pwd)" ]; then
    rm -rf "$venv"
    case $build in
    *"not optimised"*) why="no better one is on PATH; optimised ones are faster, see docs/guide/installing.md" ;;
    *) why="the newest tested one on PATH that is optimised" ;;
    esac
    echo "Making $venv with $python: $build ($why) ..."
    if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        # Debian keeps ensurepip in a package of its own; a pip outside can fill the folder as well.
        rm -rf "$venv"
        said=$("$python" -m venv --without-pip "$venv" 2>&1) || give_up "$said"
    fi
    pwd >"$venv/.place"
fi
if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    pip() { "$venv/bin/python" -m pip "$@"; }
elif "$python" -m pip --version >/dev/null 2>&1; then
    pip() { "$python" -m pip --python "$venv/bin/python" "$@"; }
else
    echo "payagg needs pip: install it for $python (on Debian: apt install python3-pip) and run make again." >&2
    exit 1
fi

total=$(grep -c '^[a-z0-9].*==' "$lock")
echo "Installing $total packages from $lock (once; later starts skip this) ..."
log=$(mktemp "${TMPDIR:-/tmp}/payagg-install.XXXXXX")
if [ -t 1 ]; then line='\r'; else line='\n'; fi
{ pip install --progress-bar off --no-deps --require-hashes -r "$lock" 2>&1 && echo done-well; } | tee "$log" | awk -v total="$total" -v line="$line" '
    /^Collecting |^Requirement already/ { n++; if (line == "\r" || n % 20 == 0) { printf "  %d of %d" line, n, total; fflush() } }
    /^Installing collected/ { printf "  unpacking ...          " line; fflush() }'
if [ -t 1 ]; then printf '\r                              \r'; fi
if ! tail -n 1 "$log" | grep -q done-well; then give_up "$(cat "$log")"; fi
rm "$log"
# The package itself is used from where it lies: what `git pull` brings is there at the next start.
printf '%s\n' "$(pwd)/src" "$(pwd)/testing" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/payagg.pth"
for command in payagg payagg-testing; do
    module=$(echo "$command" | tr - _)
    printf '#!/bin/sh\nexec "%s/bin/python" -m %s "$@"\n' "$(pwd)/$venv" "$module" >"$venv/bin/$command"
    chmod +x "$venv/bin/$command"
done
state "$lock" >"$venv/$lock.installed"
