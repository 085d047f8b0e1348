#!/usr/bin/env bash
# The judges' own tables and processes (tests/judges); what TensorFlow judges needs scripts/judges.sh.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "needs python3"
cd "$TARE_SOURCE_DIR/tests/judges" || exit 1
PYTHONDONTWRITEBYTECODE=1 python3 -m unittest judge_test >"$work/out" 2>&1 || fail "$(cat "$work/out")"
finish
