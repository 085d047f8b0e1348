#!/bin/sh
# merge_parts.sh FOLDER PARTS: merges FOLDER/part-*.calib into FOLDER/all.calib, whose bytes are those of a calibration in one process.
set -eu
[ "$(ls "$1"/part-*.calib | wc -l)" -eq "$2" ] || { echo "merge_parts: there are not $2 parts in $1" >&2; exit 1; }
exec "${TARE:-tare}" merge "$1"/part-*.calib -o "$1/all.calib"
