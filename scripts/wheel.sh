#!/usr/bin/env bash
# wheel.sh [--arm64] [OUT]: the wheel for Linux with glibc 2.28 or later and CPython 3.9 or later, and the source distribution, in OUT
# (default build/wheel), and what auditwheel, abi3audit, twine and check-wheel-contents say about them. Needs PyPI for these tools and
# for OpenBLAS. --arm64: the wheel for aarch64, by Debian's cross compiler; its program and the tutorial run under qemu.
# TARE_WHEEL_TREE: the build folder (default build-wheel or build-wheel-arm64, as deep as build, whose objects ccache then finds).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/scripts/arm64-root.sh"
machine=x86_64 tree=$root/build-wheel options=() settings='{}'
tools=$root/build/wheel-tools
[ -x "$tools/bin/python" ] || /usr/bin/python3 -m venv "$tools"
"$tools/bin/pip" install --quiet auditwheel abi3audit twine check-wheel-contents scipy-openblas32
if [ "${1:-}" = --arm64 ]; then
    shift
    arm64_root
    machine=aarch64 tree=$root/build-wheel-arm64 packages=$root/build-arm64/wheel-packages
    options=("${arm64_options[@]}" "-DPython3_INCLUDE_DIR=$libraries/usr/include/python3.11")
    settings="{\"system\": \"$libraries\", \"packages\": \"$packages\"}"
    "$tools/bin/pip" install --quiet --upgrade --target "$packages" --platform manylinux2014_aarch64 --only-binary=:all: --no-deps scipy-openblas32
fi
out=${1:-$root/build/wheel}
tree=${TARE_WHEEL_TREE:-$tree}
mkdir -p "$out"
rm -f "$out"/*_"$machine".whl "$out"/*.tar.gz
! command -v ccache >/dev/null || options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
export PYTHONDONTWRITEBYTECODE=1
cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTARE_TESTS=OFF -DTARE_MPI=OFF -DTARE_WHEEL=ON "${options[@]}" >/dev/null
(cd "$root/python" && "$tools/bin/python" -c 'import json, sys, tare_build
out, tree, settings = sys.argv[1:]
print(tare_build.build_wheel(out, {"build-dir": tree, "bundle": "yes", **json.loads(settings)}))
print(tare_build.build_sdist(out))' "$out" "$tree" "$settings")
wheel=$(ls "$out"/*_"$machine".whl)
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
twine check --strict "$wheel" "$out"/*.tar.gz
check-wheel-contents "$wheel"
if [ $machine = aarch64 ]; then
    emulated() { qemu-aarch64-static -L "$libraries" "$@"; }
    chmod +x "$unpacked/tare/bin/tare"
    emulated "$unpacked/tare/bin/tare" version
    ln -s "$root/examples" "$unpacked/examples"
    (cd "$unpacked" && PYTHONHOME=$libraries/usr PYTHONPATH=$unpacked:$libraries/usr/lib/python3/dist-packages \
        emulated -E LD_LIBRARY_PATH="$libraries/usr/lib/aarch64-linux-gnu" "$libraries/usr/bin/python3.11" -B "$root/python/examples/tutorial.py")
fi
(cd "$out" && sha256sum ./*.whl ./*.tar.gz | tee SHA256SUMS)
