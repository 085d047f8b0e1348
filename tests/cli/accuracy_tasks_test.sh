#!/usr/bin/env bash
# bench/accuracy.sh on a folder of tasks: the example, and one whose model is named by its README; tables, page, resumption.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "no python3, which writes the tables"
mkdir -p "$work/tasks/named" "$work/tasks/no_task" "$work/tasks/models"
ln -s "$glyphs" "$work/tasks/glyphs"
ln -s "$glyphs/saved_model" "$work/tasks/models/glyphs"
# shellcheck disable=SC2016 # a README in Markdown
printf -- '# named\n\n- model: `models/glyphs`\n- options: `--limit 100`\n- metric: top-1\n' >"$work/tasks/named/README.md"
cp "$glyphs/calibration.tfrecord.gz" "$glyphs/eval.tfrecord.gz" "$work/tasks/named"
bench() { TARE=$tare SETS="${sets:-int4}" bash "$source_dir/bench/accuracy.sh" "$work/tasks" "$work/out" >"$work/printed" 2>"$work/errors"; }

bench || fail "exit status $?: $(cat "$work/errors")"
[ "$(grep -c ' s$' "$work/printed")" = 2 ] || fail "not two comparisons: $(cat "$work/printed")"
grep -q '^| glyphs | 1000 | top-1 | 94.90 %' "$work/out/accuracy.md" || fail "no row of glyphs: $(cat "$work/out/accuracy.md")"
grep -q '^| named | 100 | top-1 | ' "$work/out/accuracy.md" || fail "the option of the README is ignored: $(cat "$work/out/accuracy.md")"
grep -q 'int4+gptq' "$work/out/accuracy.md" || fail "no column of int4+gptq: $(cat "$work/out/accuracy.md")"
grep -q '<h2>named, 100 records</h2>' "$work/out/accuracy.html" || fail "the page has no task 'named'"
! grep -q 'no_task' "$work/out/accuracy.md" || fail "a folder without records became a task"

bench || fail "the second run: $(cat "$work/errors")"
[ "$(grep -c ' s$' "$work/printed")" = 0 ] || fail "a complete set ran again: $(cat "$work/printed")"
printf 'before\n<!-- tables of bench/accuracy.sh -->\noutdated\n<!-- end of the tables -->\nafter\n' >"$work/page.md"
INTO=$work/page.md bench || fail "tables into a page: $(cat "$work/errors")"
grep -q '^| named | 100 |' "$work/page.md" && ! grep -q outdated "$work/page.md" && [ "$(tail -n 1 "$work/page.md")" = after ] ||
    fail "the tables are not in the page: $(cat "$work/page.md")"
cp "$glyphs/eval.tfrecord.gz" "$work/tasks/named/calibration.tfrecord.gz"
bench || fail "the third run: $(cat "$work/errors")"
[ "$(grep ' s$' "$work/printed" | cut -d' ' -f1)" = named ] || fail "other records, other runs: $(cat "$work/printed")"

rm -r "$work/tasks/models"
bench && fail "a task without a model passes"
grep -q '^named: no model (expected saved_model/' "$work/errors" || fail "the missing model: $(cat "$work/errors")"
mkdir "$work/empty"
bash "$source_dir/bench/accuracy.sh" "$work/empty" "$work/out" 2>"$work/errors" && fail "an empty folder passes"
grep -q 'no task (expected folders with' "$work/errors" || fail "the empty folder: $(cat "$work/errors")"
bash "$source_dir/bench/accuracy.sh" 2>/dev/null; [ $? = 2 ] || fail "no folder is not a usage error"
finish
