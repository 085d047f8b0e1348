#!/usr/bin/env bash
# Linear algebra with the kernels that OpenBLAS has for other processors, as far as this one can run them: its choice
# changes the last bits of results, which tests must allow and no more.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"

program=$TARE_BUILD_DIR/tests/test_interpreter
tests=$("$program" list 2>&1 | grep -o -e 'interpreter/ops/linalg/.*' -e 'interpreter/kernels/lapack')
[ -n "$tests" ] || fail "no tests of linear algebra"

# Whether the processor has all of these features.
has() {
    local feature
    for feature; do
        grep -qw "$feature" /proc/cpuinfo || return 1
    done
}

check() { # check CORE [FEATURE…]
    local core=$1 test
    shift
    has "$@" || return 0
    for test in $tests; do
        OPENBLAS_CORETYPE=$core OPENBLAS_NUM_THREADS=1 "$program" "$test" >"$work/output" 2>&1 ||
            fail "$test with OPENBLAS_CORETYPE=$core: $(grep -v -e ' OK ' -e ' RUN ' "$work/output" | head -20)"
    done
}

check Prescott
check Sandybridge avx
check Haswell avx2 fma
check Zen avx2 fma
check SkylakeX avx512f avx512vl avx512bw avx512dq
finish
