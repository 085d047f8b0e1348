#!/usr/bin/env bash
# mutate.sh [NAME…]: tries mutants (small wrong changes) of the sources, one after another, in a copy of the work tree, and
# checks that a test fails for each. Prints one line per mutant; exits with 1 when one survives. Not part of CI: each mutant is
# a rebuild. A mutant is a line of the table: name | file | text | replacement | tests (a ctest -R expression).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mutants=$(cat <<'TABLE'
fusion-two-addends | interpreter/execution/fusion.c | !is_before(f, other, head) \|\| fusion->has_addend | !is_before(f, other, head) | ^interpreter/execution/fusion$
static-sums | quant/methods/static.c | layer->product.rows > MOST_ROWS | false | ^quant/static_sums$
zlib-header | datasets/stream.c | && (head[0] << 8 \| head[1]) % 31 == 0 |  | ^datasets/stream$
TABLE
)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -C "$root" ls-files -z --cached --others --exclude-standard | (cd "$root" && xargs -0 cp --parents -t "$work" 2>/dev/null) || true
cmake -S "$work" -B "$work/build" -G Ninja -DTARE_TEST_DATA="$root/../shared/data" >/dev/null

# The test program of a ctest name: the tests proto/* are in the target test_proto.
targets() { sed -E "s/[\^$]//g; s/\|/\n/g" <<<"$1" | sed "s|/.*||; s|^|test_|" | sort -u; }
run_tests() { # shellcheck disable=SC2046
    ninja -C "$work/build" $(targets "$1") >"$work/log" 2>&1 || return 2
    ctest --test-dir "$work/build" -R "$1" >"$work/log" 2>&1
}

survivors=0 tried=0
while IFS= read -r row; do
    row=${row//'\|'/$'\x01'}
    IFS='|' read -r name file text replacement tests <<<"$row"
    for field in name file text replacement tests; do
        declare "$field=$(sed -E 's/^ +//; s/ +$//' <<<"${!field}" | tr '\001' '|')"
    done
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    tried=$((tried + 1))
    run_tests "$tests" || { echo "$name: $tests fails or does not build without the change: $(tail -3 "$work/log")"; exit 2; }
    python3 - "$work/$file" "$text" "$replacement" <<'PYTHON' || { echo "$name: '$text' occurs not exactly once in $file"; exit 2; }
import sys
path, text, replacement = sys.argv[1:]
source = open(path).read()
if source.count(text) != 1:
    sys.exit(1)
open(path, 'w').write(source.replace(text, replacement))
PYTHON
    status=0
    run_tests "$tests" || status=$?
    case $status in
        0) echo "$name: SURVIVES $tests"; survivors=$((survivors + 1)) ;;
        2) echo "$name: does not build: $(grep -m1 error "$work/log")"; survivors=$((survivors + 1)) ;;
        *) echo "$name: found by $tests" ;;
    esac
    cp "$root/$file" "$work/$file"
done <<<"$mutants"
[ $tried -gt 0 ] || { echo "mutate: no mutant of that name" >&2; exit 2; }
echo "$tried mutants, $survivors survive"
[ $survivors -eq 0 ]
