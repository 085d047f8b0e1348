#!/usr/bin/env bash
# docs/op-coverage.md says what the program says.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
"$tare" ops --markdown >"$work/op-coverage.md" || fail "ops --markdown"
diff -u "$source_dir/docs/op-coverage.md" "$work/op-coverage.md" >"$work/diff" ||
    fail "docs/op-coverage.md is out of date: run 'ninja -C build op-coverage'; $(grep -c '^[-+][^-+]' "$work/diff") lines differ: $(grep '^[-+][^-+]' "$work/diff" | head -4)"
finish
