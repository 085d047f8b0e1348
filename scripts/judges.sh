#!/usr/bin/env bash
# judges.sh [quick|all|tpu|exports|costs|NAME…]: lets TensorFlow, XLA and the TPU compiler judge what build/tare writes (tests/judges/README.md).
# quick (default): the models of the quick tier and TensorFlow's own quantizer; all: every model, those of TARE_TEST_DATA, and
# the TPU compiler on the others; tpu: conversions and the TPU compiler alone, on every model; exports [NAME…]: JAX and the TPU compiler on what tare export writes;
# costs [CHIP:BATCH…] [NAME…]: adds to the tables of tests/tpu/compiler what they lack (may be interrupted); NAME…: these models. The programs are
# installed from PyPI, at pinned versions, into TARE_JUDGES (default: tare-judges in the user's cache folder), once. Without PyPI: one
# line, and exit 0.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
judges=$root/tests/judges
cache=${TARE_JUDGES:-${XDG_CACHE_HOME:-$HOME/.cache}/tare-judges}
python=$cache/bin/python
tare=${TARE:-$root/build/tare}
[ -x "$tare" ] || { echo "judges.sh: $tare is missing (cmake --preset release && cmake --build --preset release)" >&2; exit 1; }

# Installs the packages of requirements/NAME.txt unless these very ones are installed.
install() {
    local list=$judges/requirements/$1.txt installed=$cache/$1.txt
    cmp -s "$list" "$installed" && return
    [ -x "$python" ] || python3.11 -m venv "$cache"
    "$cache/bin/pip" --disable-pip-version-check --retries 1 install --quiet --no-deps --require-hashes -r "$list" >"$cache/$1.log" 2>&1 || {
        # A wrong hash or version is an error of the list; anything else is a missing connection.
        if "$python" -c 'import urllib.request; urllib.request.urlopen("https://pypi.org/simple/six/", timeout=10)' 2>/dev/null; then
            cat "$cache/$1.log" >&2
            exit 1
        fi
        echo "judges: skipped, PyPI cannot be reached"
        exit 0
    }
    cp "$list" "$installed"
}

[ $# -gt 0 ] || set -- quick
install tensorflow
[ "$*" = quick ] || install jax
if [ "$1" = exports ]; then
    shift
    exec env TARE="$tare" TARE_TEST_DATA="${TARE_TEST_DATA:-$root/../shared/data}" PYTHONDONTWRITEBYTECODE=1 \
        "$python" -W ignore "$judges/exports.py" "${TARE_JUDGES_RESULTS:-$cache/exports.json}" "$@"
fi
if [ "$1" = costs ]; then
    shift
    exec env TARE="$tare" PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore "$judges/tpu_costs.py" "$cache/costs" "$root/tests/tpu/compiler" "$@"
fi
exec env TARE="$tare" TARE_TEST_DATA="${TARE_TEST_DATA:-$root/../shared/data}" TARE_JUDGES_RESULTS="${TARE_JUDGES_RESULTS:-$cache/results.json}" CUDA_VISIBLE_DEVICES=-1 PYTHONDONTWRITEBYTECODE=1 "$python" -W ignore "$judges/judge.py" "$@"
