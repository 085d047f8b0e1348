#!/usr/bin/env bash
# Makes what a release has, in build/release: the Debian packages, a wheel for Python, a tarball with a program that brings all it
# needs but the C library, the sources of the commit that is checked out, and their SHA-256 sums. Packages, wheel and tarball are
# tried before it says done; scripts/smoke-test.sh tries the package on a bare Debian.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/build/release
tree=$root/build/release-tree
version=$(sed -nE 's/^project\(tare VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
grep -q "\"$version\"" "$root/include/tare/version.h" || { echo "include/tare/version.h has another version than CMakeLists.txt ($version)" >&2; exit 1; }
[ -z "$(git -C "$root" status --porcelain)" ] || echo "release: the tree has changes that the source tarball lacks" >&2

"$root/scripts/install-deps.sh"
# configure OPTION…: with the libraries looked for anew; the folder may be that of an earlier run.
configure() {
    cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTARE_TESTS=OFF -U '*LIBRAR*' -U 'pkgcfg_lib_*' -U '__pkg_config_checked_*' -U 'MPI_*' \
        "$@" >/dev/null
}
configure -DTARE_STATIC=OFF -DTARE_MPI=ON
cmake --build "$tree"
rm -rf "$out"
mkdir -p "$out"
(cd "$tree" && cpack -G DEB -B "$out") >"$tree/cpack.log" || { cat "$tree/cpack.log" >&2; exit 1; }
compgen -G "$out/tare-mpi_*.deb" >/dev/null || { echo "release: no package tare-mpi was made (is libopenmpi-dev installed?)" >&2; exit 1; }
# The same objects, linked with the archives of other libraries.
configure -DTARE_STATIC=ON -DTARE_MPI=OFF
cmake --build "$tree"
(cd "$tree" && cpack -G TGZ -B "$out") >"$tree/cpack.log" || { cat "$tree/cpack.log" >&2; exit 1; }
rm -rf "$out/_CPack_Packages"
git -C "$root" archive --prefix="tare-$version/" -o "$out/tare-$version-source.tar.gz" HEAD
"$root/scripts/wheel.sh" "$out/pypi"
mv "$out"/pypi/*.whl "$out"/pypi/*.tar.gz "$out"
rm -r "$out/pypi"
"$root/scripts/check-package.sh" "$out"/tare_*.deb
"$root/scripts/check-tarball.sh" "$out"/tare-*-linux-*.tar.gz
"$root/scripts/check-python.sh" "$out"/python3-tare_*.deb
"$root/scripts/check-python.sh" "$out"/tare_quant-*.whl
(cd "$out" && sha256sum ./*.deb ./*.tar.gz ./*.whl >SHA256SUMS && cat SHA256SUMS)
