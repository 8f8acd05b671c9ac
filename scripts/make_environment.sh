#!/bin/sh
# Makes a virtual environment with Deuteron in it, from the newest usable Python from 3.11 on.
#
#     scripts/make_environment.sh .venv              # for work on it: every extra; PYTHON=python3.12 names a Python
#     scripts/make_environment.sh .venv-demo demo    # compiles for CPUs and GPUs, and holds nothing else
#
# A Python is usable when it runs (a name on PATH may be a launcher for a version that is not there) and has `ensurepip`,
# which Debian and Ubuntu ship in a package of its own.
set -eu

venv=$1
purpose=${2:-dev}
root=$(cd "$(dirname "$0")/.." && pwd)

runs() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
has_pip() { "$1" -c 'import ensurepip, venv' >/dev/null 2>&1; }

chosen=
without_pip=
for python in ${PYTHON:-python3.15 python3.14 python3.13 python3.12 python3.11 python3}; do
    runs "$python" || continue
    if has_pip "$python"; then
        chosen=$python
        break
    fi
    without_pip=${without_pip:-$python}
done

if [ -z "$chosen" ]; then
    if [ -n "$without_pip" ]; then
        version=$("$without_pip" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        echo "error: $without_pip has no 'ensurepip', so no environment can be made with it." >&2
        echo "       On Debian and Ubuntu: sudo apt install $version-venv" >&2
    else
        echo "error: no Python 3.11 or newer found (tried ${PYTHON:-python3.15 to python3.11 and python3})." >&2
        echo "       Install one, or name it: make PYTHON=/path/to/python3" >&2
    fi
    exit 1
fi

echo "Making $venv with $("$chosen" --version)"
"$chosen" -m venv --clear "$venv"
export PIP_DISABLE_PIP_VERSION_CHECK=1
if [ "$purpose" = demo ]; then
    # Of the packages that ptxas comes with, which hold NVIDIA's compiler of CUDA C++, it needs none.
    ptxas=$(sed -n 's/^cuda = \["\([^"]*\)".*/\1/p' "$root/pyproject.toml")
    "$venv/bin/python" -m pip install --quiet --editable "$root"
    "$venv/bin/python" -m pip install --quiet --no-deps "$ptxas"
else
    "$venv/bin/python" -m pip install --quiet --editable "$root[dev]"
fi
