#!/usr/bin/env bash
# Limits of batch on a chip: what the TPU compiler rejects, does not fit, or takes longer than the float model is rejected. The compiler
# of this test says of each model what its name wants.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$work" || exit 1
export TARE_TPU_COMPILER=$work/compiler
mkdir models
cp -r "$glyphs/saved_model" models/glyphs

# compiler MADE FLOAT [ERROR] [BYTES]: cycles of the job's model, which is compiled first, and of the float one.
compiler() {
    rm -f calls
    cat >compiler <<SH
#!/bin/sh
cd "$work"
echo "\$1" >>calls
[ "\$(wc -l <calls)" = 1 ] && cycles=$1 || cycles=$2
if [ -n "${3:-}" ]; then echo '{"ok": false, "compiler": "fake 1", "error": "${3:-}"}'
else echo '{"ok": true, "compiler": "fake 1", "cycles": '\$cycles', "products": {}, "memory": {"code": ${4:-1000}, "arguments": 0, "results": 0, "temporary": 0}, "ops": []}'; fi
SH
    chmod +x compiler
}
batch() { "$tare" batch models --methods weight_only --output-dir out --chip v6e --chip-batch 32 --overwrite --json "$@" >report 2>errors; }
has() { grep -qF -- "$1" report || fail "no $1 in $(cat report errors)"; }

compiler 80 100
batch --max-time 1 || fail "a model that is fast enough: $(cat report errors)"
has '"outcome": "done"' && has '"compiler": "fake 1"' && has '"cycles": 80' && has '"float_cycles": 100' && has '"chip": "v6e"'
[ "$(sort -u calls)" = v6e ] && [ "$(wc -l <calls)" = 2 ] && [ -e out/glyphs-weight_only ] || fail "calls: $(cat calls)"

compiler 120 100
batch --max-time 1 && fail "a slower model is accepted"
has 'it takes 1.20 times as long as the float model on v6e in batches of 32, by fake 1 (at most 1.00 allowed)' && has '"outcome": "rejected"'
compiler 120 100
batch --max-time 1.5 --report page.html || fail "--max-time 1.5: $(cat report errors)"
grep -qF '1.20' page.html || fail "the page has no relative time"
compiler 80 100 'out of tiles'
batch && fail "a model that does not compile is accepted"
has 'the TPU compiler rejects it for v6e: out of tiles'
compiler 80 100 '' 33000000000
batch && fail "a model that does not fit is accepted"
has 'it takes 33000 MB on v6e (the chip has 32000 MB)'

# Without the compiler, the estimate: weights of convolutions in 8 bits take as long as in bfloat16.
TARE_TPU_COMPILER=$work/none batch --max-time 1.1 || fail "estimated: $(cat report errors)"
has '"tpu_seconds"' && has '"float_tpu_seconds"'
TARE_TPU_COMPILER=$work/none batch --max-time 0.1 && fail "estimated: a tenth of the time"
has 'by the estimate (at most 0.10 allowed)'

# In a job file; a job whose limit changes runs again.
job() { printf 'job { model: "models/glyphs" method: "weight_only" output: "jobs/{name}" limits { %s } }\n' "$1" >jobs.textproto; }
compiler 80 100
job 'chip: "v6e" max_time: 1'
"$tare" batch jobs.textproto --json >report 2>errors || fail "a job file: $(cat report errors)"
compiler 80 100
job 'chip: "v6e" max_time: 0.5'
"$tare" batch jobs.textproto --resume --overwrite --json >report 2>errors && fail "a new limit is not checked"
has 'it takes 0.80 times as long'
grep -qx v6e calls || fail "the chip of the compiler: $(cat calls)"
job 'chip: "v9"'
expect 1 "limits: unknown chip 'v9'" "$tare" batch jobs.textproto
job 'max_time: 1'
expect 1 "max_time is a limit on a chip" "$tare" batch jobs.textproto
job 'chip: "v6e" chip_batch: 0'
expect 1 "limits: chip_batch is 0 (expected a finite number, 1 or more)" "$tare" batch jobs.textproto
expect 2 "--max-time" "$tare" batch models --methods weight_only --output-dir out --max-time 1
finish
