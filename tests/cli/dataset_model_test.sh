#!/usr/bin/env bash
# CIFAR-10 as tf.Example records with a spec gives what the RepresentativeDataSample records of the same images give:
# the same accuracy, and after dataset make the same bytes.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
need_data datasets/cifar10
data=$test_data
model=$data/models/resnet8_cifar10
examples=$data/datasets/cifar10/eval-1000.example.tfrecord.gz
samples=$data/datasets/cifar10/eval-1000.tfrecord.gz
cat >"$work/cifar.spec" <<'SPEC'
input { name: "input_1" feature: "image" source: RAW raw_type: UINT8 type: FLOAT32 shape: [32, 32, 3] }
label { shape: 1 whole: true }
SPEC

figures() { "$tare" compare "$model" --methods float --limit 300 --quiet --report "$work/r.csv" "$@" >/dev/null && cat "$work/r.csv"; }
by_spec=$(figures --data "$examples" --spec "$work/cifar.spec")
by_samples=$(figures --data "$samples")
[ -n "$by_samples" ] && [ "$by_spec" = "$by_samples" ] || fail "compare: $by_spec / $by_samples"

"$tare" dataset make "$examples" --spec "$work/cifar.spec" -o "$work/made.tfrecord" --quiet || fail "make: $?"
"$tare" dataset make "$samples" -o "$work/again.tfrecord" --quiet || fail "make again: $?"
cmp "$work/made.tfrecord" "$work/again.tfrecord" || fail "the samples differ"

# The same survey, and the same statistics from standard input.
"$tare" dataset info "$examples" --spec "$work/cifar.spec" --json --quiet | sed '/"path"\|"format"\|"bytes"\|"kind"/d' >"$work/a"
"$tare" dataset info "$work/made.tfrecord" --json --quiet | sed '/"path"\|"format"\|"bytes"\|"kind"/d' >"$work/b"
cmp "$work/a" "$work/b" || fail "the surveys differ"
statistics() { "$tare" calibrate "$model" -o "$work/$1.calib" --quiet --limit 50 "${@:2}" && "$tare" show "$work/$1.calib" --json | sed '/"file"\|"path"/d'; }
statistics spec --data - --spec "$work/cifar.spec" <"$examples" >"$work/by_spec.json" || fail "calibrate --spec: $?"
statistics samples --data - <"$samples" >"$work/by_samples.json" || fail "calibrate: $?"
cmp "$work/by_spec.json" "$work/by_samples.json" || fail "the statistics differ"
finish
