#!/usr/bin/env bash
# docs/op-coverage.md and docs/stablehlo-ops.md say what the program says.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
"$tare" ops --markdown >"$work/op-coverage.md" || fail "ops --markdown"
diff -u "$source_dir/docs/op-coverage.md" "$work/op-coverage.md" >"$work/diff" ||
    fail "docs/op-coverage.md is out of date: run 'ninja -C build op-coverage'; $(grep -c '^[-+][^-+]' "$work/diff") lines differ: $(grep '^[-+][^-+]' "$work/diff" | head -4)"
"$tare" ops --stablehlo >"$work/stablehlo-ops.md" || fail "ops --stablehlo"
diff -u "$source_dir/docs/stablehlo-ops.md" "$work/stablehlo-ops.md" >"$work/diff" ||
    fail "docs/stablehlo-ops.md is out of date: run 'ninja -C build op-coverage'; $(grep '^[-+][^-+]' "$work/diff" | head -4)"
grep -q '^| dot_general | v1: 0.9.0–.*; v2: .* | yes |$' "$work/stablehlo-ops.md" || fail "ops --stablehlo: $(head -20 "$work/stablehlo-ops.md")"
finish
