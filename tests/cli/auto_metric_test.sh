#!/usr/bin/env bash
# --auto by the measure of the task: samples with labels decide by top-1 first, samples without by SQNR alone; the choice is never
# below the plain method on the held-out samples.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
samples=$glyphs/eval.tfrecord.gz # with labels
auto() { # OUT OPTION…
    local out=$1
    shift
    "$tare" quantize "$glyphs/saved_model" "$work/$out" --auto --data "$samples" --limit 200 "$@" 2>"$work/report" ||
        fail "quantize $*: $(tail -1 "$work/report")"
}

auto labelled --bits 4
grep -qE '^auto: .*; top-1 [0-9.]+ % instead of [0-9.]+ %, [0-9.]+ dB instead of [0-9.]+ on [0-9]+ held-out samples' "$work/report" ||
    fail "no top-1 in: $(grep '^auto' "$work/report")"
sed -n 's/^auto: .*top-1 \([0-9.]*\) % instead of \([0-9.]*\) %.*/\1 \2/p' "$work/report" | awk '{ exit !($1 >= $2) }' ||
    fail "below the plain method: $(grep '^auto' "$work/report")"

auto unlabelled --label nothing
grep -q '^auto: ' "$work/report" || fail "no choice is printed"
grep -q 'top-1' <<<"$(grep '^auto: ' "$work/report")" && fail "top-1 without labels"

# the same measure for compare, and a requested one
"$tare" compare "$glyphs/saved_model" --data "$samples" --calibration-data "$samples" --limit 60 --methods static --auto \
    --metric top1 >"$work/table" 2>/dev/null || fail "compare --auto --metric"
grep -q '^auto: ' "$work/table" || fail "compare prints no choice"

# Two records of 16,000 are 300 times larger than the others, one of the samples that calibrate and one of those held out.
# The SQNR favours a range that contains them, accuracy one that clips them, so that labels change the choice. The written
# model has the accuracy that the report states.
cd "$work" || exit 1
mkdir outliers
python3 - <<'PY' || fail "no model"
import random, struct
random.seed(7)
IN, N = 8, 16000
w = [[random.uniform(-1, 1), random.uniform(-1, 1)] for _ in range(IN)]
def npy(path, descr, shape, data):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n" % (descr, shape)
    open(path, 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data)
rows, labels = [], []
for i in range(N):
    x = [random.uniform(-1, 1) * (300 if i in (0, 3) else 1) for _ in range(IN)]
    y = [sum(a * b[k] for a, b in zip(x, w)) for k in (0, 1)]
    rows += x
    labels.append(int(y[1] > y[0]))
npy('x.npy', '<f4', (N, IN), struct.pack('<%df' % len(rows), *rows))
npy('label.npy', '<i8', (N,), struct.pack('<%dq' % N, *labels))
dims = lambda *sizes: 'shape { %s }' % ' '.join('dim { size: %d }' % n for n in sizes)
attr = lambda key, value: 'attr { key: "%s" value { %s } }' % (key, value)
info = lambda kind, key, n: kind + ' { key: "%s" value { name: "%s:0" dtype: DT_FLOAT tensor_%s } }' % (key, key, dims(-1, n))
values = ' '.join('float_val: %r' % v for row in w for v in row)
open('outliers/saved_model.pbtxt', 'w').write(
    'meta_graphs { meta_info_def { tags: "serve" } graph_def { versions { producer: 1482 }'
    ' node { name: "x" op: "Placeholder" ' + attr('dtype', 'type: DT_FLOAT') + attr('shape', dims(-1, IN)) + ' }'
    ' node { name: "w" op: "Const" ' + attr('dtype', 'type: DT_FLOAT') +
    attr('value', 'tensor { dtype: DT_FLOAT tensor_%s %s }' % (dims(IN, 2), values)) + ' }'
    ' node { name: "y" op: "MatMul" input: "x" input: "w" ' + attr('T', 'type: DT_FLOAT') + ' } }'
    ' signature_def { key: "serving_default" value { method_name: "tensorflow/serving/predict" ' +
    info('inputs', 'x', IN) + info('outputs', 'y', 2) + ' } } }')
PY
"$tare" dataset make --input x=x.npy --input label=label.npy -o outliers.tfrecord --quiet || fail "dataset make"
outliers() { # OUT LABEL: the line that reports the choice
    "$tare" quantize outliers "$1" --auto --data outliers.tfrecord --label "$2" --min-elements 1 --activation-bits 8 2>&1 | grep '^auto: '
}
line=$(outliers unlabelled_model nothing)
grep -q '^auto: static, min_max,' <<<"$line" || fail "without labels: $line"
line=$(outliers labelled_model label)
grep -q '^auto: static, percentile:p=99.99,' <<<"$line" || fail "with labels: $line"
sed -n 's/^auto: .*top-1 \([0-9.]*\) % instead of \([0-9.]*\) %, \([0-9.-]*\) dB instead of \([0-9.-]*\) .*/\1 \2 \3 \4/p' <<<"$line" |
    awk '{ seen = 1; if (!($1 > $2 + 20 && $3 < $4 - 10)) exit 1 } END { exit !seen }' || fail "accuracy does not overrule the SQNR: $line"
"$tare" compare outliers --with labelled_model --data outliers.tfrecord --limit 500 --json --quiet >outliers.json || fail "compare: $?"
python3 - outliers.json <<'PY' || fail "the written model is not the one that was measured"
import json, sys
values = [row['value'] for row in json.load(open(sys.argv[1]))['measure']['results']]
assert values[1] > 90, values
PY

# Layers whose weights are on the grid of 8 bits: all of the noise is of the activations, and no algorithm or pass helps. With sixty
# layers it is too much for any output; with four for numbers, as of an autoencoder, and not for scores.
mkdir deep numbers scores
python3 - <<'PY' || fail "no deep model"
import random, struct
random.seed(5)
N, LAYERS, ROWS = 12, 60, 240
data = struct.pack('<%df' % (ROWS * N), *(random.gauss(0, 1) for _ in range(ROWS * N)))
header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\n" % ((ROWS, N),)
open('deep.npy', 'wb').write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + data)
dims = lambda *sizes: 'shape { %s }' % ' '.join('dim { size: %d }' % n for n in sizes)
attr = lambda key, value: 'attr { key: "%s" value { %s } }' % (key, value)
real = attr('dtype', 'type: DT_FLOAT')
info = lambda kind, key, n: kind + ' { key: "%s" value { name: "%s:0" dtype: DT_FLOAT tensor_%s } }' % (key, key, dims(-1, n))
def write(name, layers, outputs):
    nodes, last = ['node { name: "x" op: "Placeholder" ' + real + attr('shape', dims(-1, N)) + ' }'], 'x'
    for i in range(layers):
        columns = outputs if i + 1 == layers else N
        w = [127] * columns + [random.randint(-126, 126) for _ in range(columns * (N - 1))]
        values = ' '.join('float_val: %r' % (v / 256) for v in w)
        nodes.append('node { name: "w%d" op: "Const" ' % i + real + attr('value', 'tensor { dtype: DT_FLOAT tensor_%s %s }' % (dims(N, columns), values)) + ' }')
        nodes.append('node { name: "m%d" op: "MatMul" input: "%s" input: "w%d" ' % (i, last, i) + attr('T', 'type: DT_FLOAT') + ' }')
        last = 'y' if i + 1 == layers else 't%d' % i
        nodes.append('node { name: "%s" op: "%s" input: "m%d" ' % (last, 'Tanh' if last != 'y' else 'Identity', i) + attr('T', 'type: DT_FLOAT') + ' }')
    open(name + '/saved_model.pbtxt', 'w').write(
        'meta_graphs { meta_info_def { tags: "serve" } graph_def { versions { producer: 1482 } ' + ' '.join(nodes) + ' }'
        ' signature_def { key: "serving_default" value { method_name: "tensorflow/serving/predict" ' + info('inputs', 'x', N) + info('outputs', 'y', outputs) + ' } } }')
write('deep', LAYERS, N)
write('numbers', 4, N)
write('scores', 4, N - 1)
PY
"$tare" dataset make --input x=deep.npy -o deep.tfrecord --quiet || fail "dataset make"
"$tare" quantize deep wide --auto --data deep.tfrecord --min-elements 1 >log 2>&1 || fail "quantize deep: $(tail -2 log)"
[ "$(grep -c 'activation_bits=16 .*activations of 16 bits, as all layers' log)" = 60 ] || fail "not all layers have 16 bits: $(grep '^auto' log)"
sed -n 's/^auto: .* \([0-9.]*\) dB instead of \([0-9.]*\) .*/\1 \2/p' log | awk '{ seen = 1; if (!($1 > $2 + 6)) exit 1 } END { exit !seen }' ||
    fail "16 bits gain too little: $(grep '^auto' log)"
for of in numbers:4 scores:0; do
    "$tare" quantize "${of%:*}" out --overwrite --auto --data deep.tfrecord --min-elements 1 >log 2>&1 || fail "quantize $of: $(tail -2 log)"
    [ "$(grep -c 'activation_bits=16 .*activations of 16 bits, as all layers' log)" = "${of#*:}" ] || fail "$of: $(grep '^auto' log)"
done
finish
