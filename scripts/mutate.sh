#!/usr/bin/env bash
# mutate.sh [--check] [NAME…]: tries mutants (small wrong changes) of the sources, one after another, in a copy of the work tree, and
# checks that a test fails for each. Prints one line per mutant; exits with 1 when one survives. Not part of CI: each mutant is
# a rebuild. A mutant is a line of the table: name | file | text | replacement | tests (a ctest -R expression). --check only checks
# that each text occurs once, which a quick test does.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mutants=$(cat <<'TABLE'
fusion-two-addends | interpreter/execution/fusion.c | !is_before(f, other, head) \|\| fusion->has_addend | !is_before(f, other, head) | ^interpreter/execution/fusion$
int32-sums | quant/layer.c | layer->product.rows > INT32_MAX / (left * right) | layer->product.rows - 1 > INT32_MAX / (left * right) | ^quant/int32_sums$
zlib-header | datasets/stream.c | && (head[0] << 8 \| head[1]) % 31 == 0 |  | ^datasets/stream$
record-checksum | datasets/tfrecord.c | tare_crc32c_mask(tare_crc32c(bytes, (size_t)length)) != tare_load_u32(bytes + length) | false | ^datasets/tfrecord$
ties-of-constants | calib/qparams.c | double q = tare_round_half_away( | double q = tare_round_half_even( | ^calib/qparams$
zero-point-end | calib/qparams.c | low_error < high_error ? from_low : from_high | low_error > high_error ? from_low : from_high | ^calib/qparams$
ties-of-float8 | base/tensor/float8.c | __builtin_rint( | __builtin_round( | ^base/tensor/float8$
margin-by-limit | eval/verdict.c | against_float(c, row, models).high <= margin_of(c) | against_float(c, row, models).loss <= margin_of(c) | ^eval/verdict$
broken-outputs | eval/verdict.c | if (broken_output(c, row) >= 0) return false; |  | ^eval/verdict$
tile-columns | tpu/io_shapes.c | if (shape->dims[rank - 1] % TILE_COLUMNS) return true; |  | ^tpu/io_shapes$
training-functions | convert/composites/fuse.c | is_for_training(graph) \|\| !read_annotation | (false && is_for_training(graph)) \|\| !read_annotation | ^convert/composites$
TABLE
)
# each ACTION: calls it for each mutant of the table, or those named, with its fields as variables.
each() {
    local row field tried=0
    while IFS= read -r row; do
        row=${row//'\|'/$'\x01'}
        IFS='|' read -r name file text replacement tests <<<"$row"
        for field in name file text replacement tests; do
            declare -g "$field=$(sed -E 's/^ +//; s/ +$//' <<<"${!field}" | tr '\001' '|')"
        done
        [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $name "* ]] || continue
        tried=$((tried + 1))
        "$1" || exit
    done <<<"$mutants"
    [ $tried -gt 0 ] || { echo "mutate: no mutant of that name" >&2; exit 2; }
}

# mutated FOLDER: changes the file of the mutant there.
mutated() {
    python3 - "$1/$file" "$text" "$replacement" <<'PYTHON' || { echo "$name: '$text' occurs not exactly once in $file" >&2; return 2; }
import sys
path, text, replacement = sys.argv[1:]
source = open(path).read()
if source.count(text) != 1:
    sys.exit(1)
open(path, 'w').write(source.replace(text, replacement))
PYTHON
}

copied() { mkdir -p "$work/$(dirname "$file")" && cp "$root/$file" "$work/$file" && mutated "$work"; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
names=("$@")
if [ "${1:-}" = --check ]; then
    names=("${@:2}")
    each copied
    exit
fi
git -C "$root" ls-files -z --cached --others --exclude-standard | (cd "$root" && xargs -0 cp --parents -t "$work" 2>/dev/null) || true
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
cmake -S "$work" -B "$work/build" -G Ninja -DTARE_TEST_DATA="$root/../shared/data" >/dev/null

# The test program of a ctest name: the tests proto/* are in the target test_proto.
targets() { sed -E "s/[\^$]//g; s/\|/\n/g" <<<"$1" | sed "s|/.*||; s|^|test_|" | sort -u; }
run_tests() { # shellcheck disable=SC2046
    ninja -C "$work/build" $(targets "$1") >"$work/log" 2>&1 || return 2
    ctest --test-dir "$work/build" -R "$1" >"$work/log" 2>&1
}

survivors=0
try() {
    run_tests "$tests" || { echo "$name: $tests fails or does not build without the change: $(tail -3 "$work/log")"; return 2; }
    mutated "$work" || return 2
    local status=0
    run_tests "$tests" || status=$?
    case $status in
        0) echo "$name: SURVIVES $tests"; survivors=$((survivors + 1)) ;;
        2) echo "$name: does not build: $(grep -m1 error "$work/log")"; survivors=$((survivors + 1)) ;;
        *) echo "$name: found by $tests" ;;
    esac
    cp "$root/$file" "$work/$file"
}
each try
echo "$survivors survive"
[ $survivors -eq 0 ]
