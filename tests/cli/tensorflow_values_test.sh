#!/usr/bin/env bash
# A model that TensorFlow saved (tests/golden/tensorflow/model): a 4-bit variable, a function without results, outputs of
# similar names.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$source_dir/tests/golden/tensorflow/model
helper=$TARE_TEST_HELPERS/op_model
cd "$work" || exit 1

"$tare" run "$model" --quiet >out 2>err || fail "run: $(cat err)"
grep -qxF 'values int8[5] -8 -3 0 1 7' out || fail "4-bit variable: $(cat out)"

# A function without results runs for what it prints and checks.
"$helper" array positive.npy 'float[] 2' && "$helper" array negative.npy 'float[] -2' || fail "array"
"$tare" run "$model" --function check --input x=positive.npy >out 2>err || fail "--function check: $(cat err)"
grep -qxF 'got 2' err || fail "nothing is printed: $(cat err)"
status=0
"$tare" run "$model" --function check --input x=negative.npy >out 2>err || status=$?
[ $status = 1 ] && grep -q 'assertion failed: .* \[-2\]' err || fail "a failing assertion: exit status $status: $(cat err)"
"$helper" samples many.tfrecord x 'float[] 2' 3 || fail "samples: $?"
"$tare" run "$model" --function check --data many.tfrecord >out 2>err || fail "of records: $(cat err)"
[ "$(grep -c '^got 2$' err)" = 3 ] || fail "of records: $(cat err)"

# Two outputs whose files would have one name.
expect 2 "outputs 'a/b' and 'a__b' would be one file" "$tare" run "$model" --signature names --output-dir out.names --quiet
absent out.names
"$tare" run "$model" --signature names --output a/b --output-dir out.names --quiet || fail "--output a/b: $?"
[ -s out.names/a__b.npy ] || fail "--output a/b writes $(ls out.names)"

# Strings in a file: text as it is, what would begin another line or is not text escaped.
"$tare" run "$model" --signature texts --output-dir out.texts --quiet || fail "texts: $?"
printf 'W\303\266rld\v\t\346\227\245\346\234\254\n%s\n%s\n' 'a\\b\nc\r\x00\xff\x1b[m' '\xc2\x85' >expected
cmp -s out.texts/texts.txt expected || fail "texts: $(od -c out.texts/texts.txt)"
finish
