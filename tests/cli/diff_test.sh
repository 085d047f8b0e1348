#!/usr/bin/env bash
# tare diff: the same model, quantized twice with other settings, one changed weight, two reports.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
says() { grep -qE -- "$1" "$work/out" || fail "no '$1' in: $(head -40 "$work/out")"; }

"$tare" diff "$model" "$model" >"$work/out" || fail "diff: $?"
says 'Ops, weights and signatures are the same'

"$tare" quantize "$model" "$work/channel" --method weight_only --quiet || fail "quantize: $?"
"$tare" quantize "$model" "$work/tensor" --method weight_only --granularity per_tensor --quiet || fail "quantize: $?"
"$tare" diff "$model" "$work/channel" >"$work/out" || fail "diff: $?"
says '^bytes of weights +153392 +[0-9]+ +-[0-9]+ +0\.[0-9]+$'
says '^[0-9]+ of 12 layers differ$'
says '^block2_pointwise +Conv2D +float32\[1,1,32,64\] +XlaConvV2 +int8\[1,1,32,64\] +0\.25 +4[0-9]\.[0-9]+$'
says '^[0-9]+ of 12 layers have weights of another dtype; the least exact is block[0-9]_pointwise \(SQNR 4[0-9]\.[0-9] dB\)\.$'
says '^The weights take 0\.153 MB in the first model and 0\.0[0-9]+ MB in the second: 3[0-9] %\.$'
says '^SQNR dB: of the second weight, each output channel scaled to fit the first$'
says '^XlaConvV2 +0 +[0-9]+ +\+'
says 'only in the first'
says 'only in the second +- +int8\['

# a dry run says what the real one writes
"$tare" quantize "$model" "$work/dry" --method weight_only --dry-run --quiet >"$work/out" || fail "dry run: $?"
says '^would write .*/dry: weights [0-9.]+ MB, [0-9.]+% of the float'
absent "$work/dry"

# per channel against per tensor: integers change, and so do the scales' shapes
"$tare" diff "$work/channel" "$work/tensor" --all >"$work/out" || fail "diff: $?"
says '/weight +changed +int8\[[0-9,]+\] +int8\[[0-9,]+\] +[0-9]+ +-?[0-9.]+$'
says '^[0-9]+ of [0-9]+ weights differ$'
"$tare" diff "$work/channel" "$work/tensor" --json >"$work/out" || fail "diff: $?"
says '"same": false'
says '"change": "changed"'

# other ranges of activations: other scales
"$tare" calibrate "$model" --data "$glyphs/calibration.tfrecord.gz" -o "$work/c.calib" --quiet || fail "calibrate: $?"
for algorithm in min_max mse; do
    "$tare" quantize "$model" "$work/$algorithm" --calibration "$work/c.calib" --algorithm $algorithm --quiet || fail "quantize: $?"
done
"$tare" diff "$work/min_max" "$work/mse" >"$work/out" || fail "diff: $?"
says '^[0-9]+ numbers differ$'
says 'scale.* +[0-9.]+ +[0-9.]+ +[0-9.]+$'

# reports
for limit in 50 100; do
    "$tare" compare "$model" --data "$glyphs/eval.tfrecord.gz" --methods weight_only --limit $limit --quiet --json >"$work/$limit.json" || fail "compare: $?"
done
"$tare" diff "$work/50.json" "$work/100.json" >"$work/out" || fail "diff: $?"
says '^float '
says '^weight_only per_channel +[0-9.]+ +[0-9.]+ +[+-]'
"$tare" diff "$work/50.json" "$work/100.json" --json >"$work/out" || fail "diff --json: $?"
says '"name": "weight_only per_channel"'
says '"tpu_seconds": \['

# every measure of a report
measured() { printf '{"measure": {"name": "mae", "results": [{"value": %s}]}, "results": [{"method": "float", "expected_mean_abs_error": %s, "iou": %s, "psnr": 31}]}' "$@"; }
measured 0.25 0.25 70 >"$work/first.json"
measured 0.5 0.5 71.5 >"$work/second.json"
"$tare" diff "$work/first.json" "$work/second.json" >"$work/out" || fail "diff of measures: $?"
for heading in MAE 'IoU %' 'PSNR dB' measure; do
    says "^$heading +first +second +change\$"
done
says '^float +70.00 +71.50 +\+1.5$'
"$tare" diff "$work/first.json" "$work/second.json" --json >"$work/out" || fail "diff --json of measures: $?"
grep -q 'measure_value":\[0.25,0.5$' <<<"$(grep -A2 '"measure_value": \[' "$work/out" | tr -d ' \n')" || fail "the measure in JSON: $(cat "$work/out")"

for what in "two models:$work/channel $work/tensor" "two reports:$work/50.json $work/100.json"; do
    # shellcheck disable=SC2086
    "$tare" diff ${what#*:} --html "$work/diff.html" >"$work/out" || fail "diff --html: $?"
    [ -s "$work/out" ] || fail "diff --html prints nothing"
    grep -qi "<h1>${what%%:*} side by side</h1>" "$work/diff.html" && grep -q '</html>' "$work/diff.html" || fail "no page of ${what%%:*}"
done
grep -q '<th scope="row" class="l w">weight_<wbr/>only per_<wbr/>channel</th><td>[0-9.]*</td><td>[0-9.]*</td><td>[+-]' "$work/diff.html" ||
    fail "the page has no row of weight_only"

# Two folders of arrays: the outputs of two models; the float model's are the same as themselves.
"$tare" quantize "$model" "$work/int8" --method weight_only --quiet || fail "quantize: $?"
for which in model int8; do
    folder=$([ $which = model ] && echo "$model" || echo "$work/int8")
    "$tare" run "$folder" --data "$glyphs/eval.tfrecord.gz" --limit 20 --output-dir "$work/outputs_$which" --quiet >"$work/out" || fail "run: $(cat "$work/out")"
done
"$tare" diff "$work/outputs_model" "$work/outputs_model" >"$work/out" || fail "diff of arrays: $?"
says '^0 of 1 files differ$'
cp "$work/outputs_model/probabilities.npy" "$work/outputs_int8/extra.npy"
"$tare" diff "$work/outputs_model" "$work/outputs_int8" --json --html "$work/arrays.html" >"$work/arrays.json" || fail "diff of arrays: $?"
python3 - "$work/arrays.json" <<'PY' || fail "diff of arrays: $(cat "$work/arrays.json")"
import json, sys
r = json.load(open(sys.argv[1]))
files = {f["name"]: f for f in r["files"]}
assert not r["same"] and sorted(files) == ["extra.npy", "probabilities.npy"]
assert files["extra.npy"]["result"] == "only in the second" and files["extra.npy"]["sqnr_db"] is None
f = files["probabilities.npy"]
assert f["result"] == "differs" and 20 < f["sqnr_db"] < 80 and 0 < f["mean_abs_error"] < f["max_abs_error"] < 1
assert 0 <= f["max_abs_error_row"] < 20 and 0.99 < f["cosine"] < 1 and f["first"] == f["second"] == "float32[20,10]"
PY
# two arrays, and what are not two of one kind
cp "$work/outputs_model/probabilities.npy" "$work/a.npy"
cp "$work/outputs_int8/probabilities.npy" "$work/b.npy"
"$tare" diff "$work/a.npy" "$work/b.npy" --json >"$work/two.json" || fail "diff of two files: $?"
python3 - "$work/arrays.json" "$work/two.json" <<'PY' || fail "diff of two files: $(cat "$work/two.json")"
import json, sys
folders, files = (json.load(open(path))["files"] for path in sys.argv[1:])
assert len(files) == 1 and files[0]["name"] == "a.npy"
assert dict(files[0], name="probabilities.npy") == next(f for f in folders if f["name"] == "probabilities.npy")
PY
expect 1 "an array and a folder (expected two of one kind)" "$tare" diff "$work/a.npy" "$work/outputs_int8"
expect 2 "a SavedModel and arrays (expected two of one kind)" "$tare" diff "$work/outputs_model" "$work/int8"
expect 2 "a SavedModel and arrays (expected two of one kind)" "$tare" diff "$work/int8" "$work/a.npy"
# 64-bit integers that round to the same double differ by 1
python3 - "$work" <<'PY' || fail "no arrays of 64-bit integers"
import os, struct, sys
def npy(path, descr, code, values):
    header = ("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }" % (descr, len(values))).ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<%d%s" % (len(values), code), *values))
for folder, last in (("large_a", 0), ("large_b", 1)):
    os.mkdir(f"{sys.argv[1]}/{folder}")
    npy(f"{sys.argv[1]}/{folder}/signed.npy", "<i8", "q", [3, -2 ** 60 + last])
    npy(f"{sys.argv[1]}/{folder}/unsigned.npy", "<u8", "Q", [3, 2 ** 64 - 2 + last])
PY
"$tare" diff "$work/large_a" "$work/large_b" >"$work/out" || fail "diff of 64-bit integers: $?"
says '^signed.npy +int64\[2\] +int64\[2\] +differs +[0-9.]+ +1\.0+ +0\.5 +1 at 1$'
says '^unsigned.npy +uint64\[2\] +uint64\[2\] +differs +[0-9.]+ +1\.0+ +0\.5 +1 at 1$'

# names of both folders in one order
mkdir "$work/names_a" "$work/names_b"
for name in b c e f; do cp "$work/large_a/signed.npy" "$work/names_a/$name.npy"; done
for name in a c d e g; do cp "$work/large_b/signed.npy" "$work/names_b/$name.npy"; done
"$tare" diff "$work/names_a" "$work/names_b" --json >"$work/names.json" || fail "diff of folders: $?"
names=$(python3 -c 'import json, sys; print(*[f["name"][0] + f["result"][:15] for f in json.load(open(sys.argv[1]))["files"]])' "$work/names.json")
[ "$names" = "aonly in the sec bonly in the fir cdiffers donly in the sec ediffers fonly in the fir gonly in the sec" ] ||
    fail "names of two folders: $names"

grep -q 'only in the second' "$work/arrays.html" || fail "the page has no missing file"

expect 1 "no such directory" "$tare" diff "$model" "$work/nowhere"
echo '{}' >"$work/empty.json"
expect 1 "not a report of" "$tare" diff "$work/50.json" "$work/empty.json"
expect 2 "SECOND" "$tare" diff "$model"
finish
