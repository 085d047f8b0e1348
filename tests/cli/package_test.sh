#!/usr/bin/env bash
# The Debian package of this build does the main job from where it is unpacked; a package that lacks something is refused;
# 'cmake --install' installs all of it, also below another prefix.
set -uo pipefail
command -v cpack >/dev/null && command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null ||
    skip "needs cpack, dpkg-deb and dpkg-shlibdeps"
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
check=$TARE_SOURCE_DIR/scripts/check-package.sh

targets=pages
[ -z "$(find "$TARE_BUILD_DIR/CMakeFiles" "$TARE_BUILD_DIR/cli" -name 'tare_mpi.dir')" ] || targets='pages tare_mpi'
cmake --build "$TARE_BUILD_DIR" --target $targets >"$work/log" 2>&1 || fail "$targets: $(tail -3 "$work/log")"
(cd "$TARE_BUILD_DIR" && cpack -G DEB -B "$work") >"$work/log" 2>&1 || fail "cpack: $(cat "$work/log")"
package=$(ls "$work"/tare_*.deb)
bash "$check" "$package" >"$work/log" 2>&1 || fail "$(cat "$work/log")"
grep -q 'libprotobuf-c1' "$work/log" || fail "no dependency on libprotobuf-c1: $(cat "$work/log")"

# A package without its manual page, and one without a dependency.
dpkg-deb -R "$package" "$work/tree"
rm "$work/tree/usr/share/man/man1/tare.1.gz"
dpkg-deb -Zgzip -z1 -b "$work/tree" "$work/worse.deb" >/dev/null
bash "$check" "$work/worse.deb" >"$work/log" 2>&1 && fail "a package without tare.1 passes"
grep -q 'lacks usr/share/man/man1/tare.1.gz' "$work/log" || fail "does not say what is lacking: $(cat "$work/log")"
echo x >"$work/tree/usr/share/man/man1/tare.1.gz"
sed -i -E 's/libjansson4[^,]*, //' "$work/tree/DEBIAN/control"
dpkg-deb -Zgzip -z1 -b "$work/tree" "$work/worse.deb" >/dev/null
bash "$check" "$work/worse.deb" >"$work/log" 2>&1 && fail "a package that does not depend on libjansson4 passes"
grep -q 'libjansson4' "$work/log" || fail "does not say which dependency is lacking: $(cat "$work/log")"

cmake --install "$TARE_BUILD_DIR" --prefix "$work/prefix" --component tare >/dev/null || fail "install: $?"
(cd "$work/prefix" && find . -type f | sort) >"$work/installed"
(cd "$work/tree/usr" && find . -type f | sort) >"$work/packaged"
diff "$work/installed" "$work/packaged" >"$work/diff" || fail "install and package differ: $(cat "$work/diff")"
"$work/prefix/bin/tare" version >/dev/null || fail "the installed program does not start"
finish
