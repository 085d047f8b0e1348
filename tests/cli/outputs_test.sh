#!/usr/bin/env bash
# What the commands print about the bundled example, whole: TARE_SET_OUTPUTS=1 ctest -R cli/outputs writes it anew.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
cd "$glyphs" || exit 1
samples=calibration.tfrecord.gz records=eval.tfrecord.gz
# Estimated times, which every fit to the TPU compiler changes, are N.
without_times() { "$@" 2>&1 | sed -E '/ is estimated slower /d; s/[0-9][0-9.]* µs/N µs/g; s/^((float|static|weight_only).*  )[0-9.]+$/\1N/'; }

same_output inspect "$tare" inspect saved_model --ops
same_output validate "$tare" validate saved_model
same_output info "$tare" dataset info "$samples"
same_output head "$tare" dataset head "$records" --limit 2
same_output calibrate "$tare" calibrate saved_model --data "$samples" -o "$work/c.calib" --quiet
same_output show "$tare" show "$work/c.calib" --tensor pointwise
same_output quantize without_times "$tare" quantize saved_model "$work/q" --calibration "$work/c.calib"
same_output weight_only "$tare" quantize saved_model "$work/w" --method weight_only --bits 4 --granularity per_block:32
same_output diff "$tare" diff saved_model "$work/q"
same_output compare without_times "$tare" compare saved_model --calibration "$work/c.calib" --data "$records" --limit 200 --quiet
same_output explain without_times "$tare" compare saved_model --calibration "$work/c.calib" --data "$records" --limit 100 \
    --methods static --explain --quiet
same_output no_model "$tare" inspect "$work/nothing"
same_output no_option "$tare" quantize saved_model "$work/x" --metod static
finish
