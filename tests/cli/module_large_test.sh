#!/usr/bin/env bash
# Memory of reading and printing a module of 1 GB: no more than the file and a tenth; its constant is neither copied nor printed.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
sanitized && skip "AddressSanitizer uses memory of its own"
file=$work/large.mlirbc
"$TARE_TEST_HELPERS/large_module" "$file" 1000000000 || fail "large_module"
size=$(stat -c %s "$file")
[ "$size" -gt 1000000000 ] || fail "the file has $size bytes"
[ "$(du -k "$file" | cut -f1)" -lt 100000 ] || skip "the file system has no holes"
for options in "" --functions --json "--signature=serving_default"; do
    # shellcheck disable=SC2086
    "$TARE_TEST_HELPERS/peak" "$work/peak" "$tare" inspect "$file" $options >"$work/out" 2>"$work/err" || fail "inspect $options: $(cat "$work/err")"
    read -r kib _ <"$work/peak"
    [ "$kib" -le $((size / 1024 * 11 / 10)) ] || fail "inspect $options: $kib KiB for a file of $((size / 1024)) KiB"
    [ "$(wc -c <"$work/out")" -lt 4096 ] || fail "inspect $options prints $(wc -c <"$work/out") bytes"
done
"$tare" inspect "$file" --functions >"$work/out"
grep -qF 'stablehlo.constant dense<0.0> : tensor<250000000xf32>' "$work/out" || grep -qF 'dense<__elided__> : tensor<250000000xf32>' "$work/out" ||
    fail "the constant is printed otherwise: $(head -c 500 "$work/out")"
# to run it, the constant is copied, and the pages of the file that were read are released
"$TARE_TEST_HELPERS/large_module" "$file" 400000000 || fail "large_module"
size=$(stat -c %s "$file")
"$TARE_TEST_HELPERS/peak" "$work/peak" "$tare" run "$file" >"$work/out" 2>"$work/err" || fail "run: $(cat "$work/err")"
read -r kib _ <"$work/peak"
[ "$kib" -le $((size / 1024 * 12 / 10)) ] || fail "run: $kib KiB for a file of $((size / 1024)) KiB"
finish
