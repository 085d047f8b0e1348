#!/usr/bin/env bash
# The wheel of scripts/wheel.sh passes its audits, has the same bytes when it is written again, and works without a compiler in an
# environment of each Python of TARE_PYTHONS (interpreters, separated by colons) and the system's; the source distribution has its
# metadata without compiling, and says that CMake is missing.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
python=/usr/bin/python3
"$python" -c 'import numpy, venv, ensurepip' 2>/dev/null || skip "needs python3-venv and python3-numpy"
"$python" -c 'import urllib.request; urllib.request.urlopen("https://pypi.org/simple/six/", timeout=10)' 2>/dev/null || skip "PyPI cannot be reached"

TARE_WHEEL_TREE=$work/tree bash "$TARE_SOURCE_DIR/scripts/wheel.sh" "$work/out" >"$work/log" 2>&1 || fail "wheel.sh: $(tail -5 "$work/log")"
wheel=$(ls "$work"/out/*.whl)
IFS=: read -r -a others <<<"${TARE_PYTHONS:-}"
bash "$TARE_SOURCE_DIR/scripts/check-python.sh" "$wheel" "${others[@]}" >"$work/log" 2>&1 || fail "$(cat "$work/log")"

mkdir "$work/again"
(cd "$TARE_SOURCE_DIR/python" && "$TARE_SOURCE_DIR/build/wheel-tools/bin/python" -B -c 'import sys, tare_build
out, tree = sys.argv[1:]
tare_build.build_wheel(out, {"build-dir": tree, "bundle": "yes"})
tare_build.build_sdist(out)' "$work/again" "$work/tree") >"$work/log" 2>&1 || fail "$(tail -3 "$work/log")"
for file in "$work"/again/*; do
    cmp "$file" "$work/out/${file##*/}" || fail "${file##*/} has other bytes when it is written again"
done

tar -xzf "$work"/out/tare_quant-*.tar.gz -C "$work"
cd "$work"/tare_quant-*/ || fail "no folder in the source distribution"
PATH=/nowhere "$python" -B -c 'import sys; sys.path.insert(0, "python"); import tare_build
tare_build.prepare_metadata_for_build_wheel(sys.argv[1])' "$work/metadata" || fail "no metadata without compiling"
grep -q '^Name: tare-quant$' "$work"/metadata/*/METADATA || fail "the metadata has another name"
PATH=/nowhere "$python" -B -c 'import sys; sys.path.insert(0, "python"); import tare_build
tare_build.build_wheel(sys.argv[1])' "$work" 2>"$work/err" && fail "builds without CMake"
[ "$(wc -l <"$work/err")" = 1 ] && grep -q 'needs CMake 3.25 or later (it is not installed: pip install cmake ninja' "$work/err" || fail "$(cat "$work/err")"
finish
