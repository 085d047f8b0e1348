#!/usr/bin/env bash
# Thirty jobs over ten real models and three methods, two of them on broken models: 28 succeed, two fail with their reason.
# Killed in the middle (kill -9) and resumed, no finished job runs again, and the bytes are those of an uninterrupted run.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
need_data models
data=$test_data
models="autoencoder_ad mlperf-tiny-kws mobilenet_vww mnist-conv-mlnet mnist-lr-mlnet resnet8_cifar10 vespa-dropout
    vespa-batchnorm vespa-mnist vespa-mnist-softmax"

# Two models whose files are there and cannot be meant: cut short, and other bytes where a weight's checksum covers them.
mkdir -p "$work/broken/cut" && cp -r "$data/models/resnet8_cifar10" "$work/broken/changed"
chmod -R u+w "$work/broken"
head -c 5000 "$data/models/resnet8_cifar10/saved_model.pb" >"$work/broken/cut/saved_model.pb"
printf 'xxxxxxxx' | dd of="$(find "$work/broken/changed/variables" -name '*.data-*' | head -1)" bs=1 seek=20000 conv=notrunc 2>/dev/null

jobs() { # jobs FOLDER
    mkdir -p "$1"
    local left=28
    for model in $models; do
        for method in static dynamic weight_only; do
            [ $((left--)) -gt 0 ] || continue
            local inputs=$data/references/$model/serving_default/inputs.tfrecord.gz
            echo "job { model: \"$data/models/$model\" method: \"$method\" data: \"$inputs\" evaluation: \"$inputs\" output: \"out/{name}\" }"
        done
    done >"$1/jobs.textproto"
    for model in cut changed; do
        echo "job { model: \"$work/broken/$model\" method: \"weight_only\" output: \"out/{name}\" }" >>"$1/jobs.textproto"
    done
}
count() { grep -l "\"outcome\": \"$2\"" "$1"/jobs.textproto.state/[!.]*.json 2>/dev/null | wc -l; }

jobs "$work/a"
"$tare" batch "$work/a/jobs.textproto" --jobs 2 --quiet --json >"$work/a/report.json" 2>"$work/a/stderr"
[ $? -eq 1 ] || fail "exit status is not 1 though two jobs failed: $(cat "$work/a/stderr")"
grep -q '"jobs_total": 30' "$work/a/report.json" || fail "not thirty jobs: $(grep jobs_ "$work/a/report.json")"
[ "$(count "$work/a" done)" = 28 ] && [ "$(count "$work/a" failed)" = 2 ] ||
    fail "$(count "$work/a" done) done, $(count "$work/a" failed) failed: $(grep -h '"reason"' "$work/a"/jobs.textproto.state/*.json)"
for model in cut changed; do
    grep -Eq '"reason": ".{20,}"' "$work/a/jobs.textproto.state/$model-weight_only.json" || fail "$model failed without a reason"
    absent "$work/a/out/$model-weight_only"
done

# Killed when some jobs are done and some are not.
for _ in 1 2 3 4 5; do # until the kill comes before the end
    rm -rf "$work/b"
    jobs "$work/b"
    "$tare" batch "$work/b/jobs.textproto" --jobs 2 --quiet >/dev/null 2>&1 &
    batch=$!
    while kill -0 $batch 2>/dev/null && [ "$(count "$work/b" done)" -lt 8 ]; do sleep 0.02; done
    kill -9 $batch 2>/dev/null
    wait $batch 2>/dev/null
    processes_end "$work/b/jobs.textproto"
    finished=$(grep -l '"outcome": "done"' "$work/b"/jobs.textproto.state/[!.]*.json)
    before=$(wc -l <<<"$finished")
    [ "$before" -ge 28 ] || break
done
[ "$before" -ge 8 ] && [ "$before" -lt 28 ] || fail "$before jobs were done when the batch was killed (expected 8 … 27)"
for file in $finished; do touch -d '2001-01-01' "$file"; done
"$tare" batch "$work/b/jobs.textproto" --jobs 2 --quiet --resume --json >"$work/b/report.json" 2>/dev/null
for file in $finished; do
    [ "$file" -ot "$work/broken" ] || fail "a finished job ran again: $file"
done
grep -q "\"jobs_skipped\": $before" "$work/b/report.json" || fail "not $before left out: $(grep jobs_ "$work/b/report.json")"
[ "$(count "$work/b" done)" = 28 ] || fail "after resuming $(count "$work/b" done) are done"
diff -r "$work/a/out" "$work/b/out" >"$work/diff" || fail "killed and resumed: other bytes: $(head -3 "$work/diff")"
[ -z "$(find "$work/b/out" -name '.*')" ] || fail "left behind: $(find "$work/b/out" -name '.*')"
finish
