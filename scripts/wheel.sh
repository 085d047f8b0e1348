#!/usr/bin/env bash
# wheel.sh [OUT]: the wheel for Linux with glibc 2.28 or later and CPython 3.9 or later, and the source distribution, in OUT (default
# build/wheel), and what auditwheel, abi3audit, twine and check-wheel-contents say about them. Needs PyPI for these tools and for OpenBLAS.
# TARE_WHEEL_TREE: the build folder (default build-wheel, as deep as build, whose objects ccache then finds).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:-$root/build/wheel}
tree=${TARE_WHEEL_TREE:-$root/build-wheel}
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
tools=$root/build/wheel-tools
mkdir -p "$out"
rm -f "$out"/*.whl "$out"/*.tar.gz
[ -x "$tools/bin/python" ] || /usr/bin/python3 -m venv "$tools"
"$tools/bin/pip" install --quiet auditwheel abi3audit twine check-wheel-contents scipy-openblas32
export PYTHONDONTWRITEBYTECODE=1
cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTARE_TESTS=OFF -DTARE_MPI=OFF -DTARE_WHEEL=ON "${launcher[@]}" >/dev/null
(cd "$root/python" && "$tools/bin/python" -c 'import sys, tare_build
out, tree = sys.argv[1:]
print(tare_build.build_wheel(out, {"build-dir": tree, "bundle": "yes"}))
print(tare_build.build_sdist(out))' "$out" "$tree")
wheel=$(ls "$out"/*.whl)
size=$(stat -c %s "$wheel")
[ "$size" -le 25000000 ] || { echo "wheel.sh: the wheel has $size bytes (expected at most 25 MB)" >&2; exit 1; }
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
python3 -m zipfile -e "$wheel" "$unpacked"
! grep -rlF "$root" "$unpacked" || { echo "wheel.sh: the bytes depend on the folder of the sources" >&2; exit 1; }
PATH=$tools/bin:$PATH
auditwheel show "$wheel" >"$tree/auditwheel.txt"
grep -qE 'constrains the platform tag to +"manylinux_2_28_' <<<"$(tr '\n' ' ' <"$tree/auditwheel.txt")" || { cat "$tree/auditwheel.txt" >&2; exit 1; }
abi3audit --strict --assume-minimum-abi3 3.9 "$wheel"
twine check --strict "$out"/*
check-wheel-contents "$wheel"
(cd "$out" && sha256sum ./*.whl ./*.tar.gz | tee SHA256SUMS)
