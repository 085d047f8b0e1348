#!/usr/bin/env bash
# What docs/accuracy.md promises of ResNet-8 on CIFAR-10, measured (bench/accuracy_resnet.sh --check).
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
need_data models/resnet8_cifar10
data=$test_data
TARE=$tare TARE_TEST_DATA=$data bash "$TARE_SOURCE_DIR/bench/accuracy_resnet.sh" --check >"$work/out" 2>&1 || fail "$(cat "$work/out")"
[ "$(grep -c ': holds$' "$work/out")" = 6 ] || fail "not six promises hold: $(cat "$work/out")"
finish
