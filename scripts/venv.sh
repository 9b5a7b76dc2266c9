#!/bin/sh
# Make (or refresh) the project's virtual environment: scripts/venv.sh PYTHON VENV_DIRECTORY
# Needs nothing but a Python of 3.11 or newer. On Debian without its venv module that package is fetched when permitted.
set -eu
cd "$(dirname "$0")/.."
wanted=${1:-python3}
venv=${2:-.venv}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

python=
for candidate in "$wanted" python3.14 python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 && new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    found=$("$wanted" --version 2>&1) || found="no usable '$wanted'"
    echo "Rota needs Python 3.11 or newer; found: $found." >&2
    echo "Install one (Debian 12: apt-get install python3 python3-venv), or name it: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi

# An environment that was copied, or whose Python is gone, cannot be repaired: make it anew.
if [ -d "$venv" ] && ! { "$venv/bin/python" -m pip --version >/dev/null 2>&1 && new_enough "$venv/bin/python"; }; then
    echo "the environment in $venv does not work any more; making a new one."
    rm -rf "$venv"
fi
if [ ! -d "$venv" ]; then
    echo "making $venv with $($python --version)"
    # Debian ships Python without ensurepip; its package has to come first.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        sh scripts/apt.sh "$(basename "$("$python" -c 'import sys; print("python3.%d" % sys.version_info[1])')")-venv" || {
            echo "'$python -m venv' cannot work without ensurepip. Debian: apt-get install python3-venv" >&2
            exit 1
        }
    fi
    "$python" -m venv "$venv"
fi

# The pip that comes with Python 3.11 does not know dependency groups (pip 25.1 does).
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1"
"$venv/bin/python" -m pip install -qq --disable-pip-version-check --editable . --group dev

# The install has fetched the dashboard's scripts, but pip keeps to itself whether it could; this says so, or does nothing.
"$venv/bin/python" scripts/assets.py
