#!/bin/sh
# calibrate_shard.sh MODEL DATA FOLDER: one part of a calibration, FOLDER/part-I.calib. Its number I and their number N are those of a
# Slurm array (SLURM_ARRAY_TASK_ID from 0) or of an indexed Job of Kubernetes (JOB_COMPLETION_INDEX, and SHARDS in the manifest).
# A part that was interrupted continues; one that is complete is left as it is.
set -eu
index=${SLURM_ARRAY_TASK_ID:-${JOB_COMPLETION_INDEX:?not in a Slurm array or an indexed Job}}
count=${SLURM_ARRAY_TASK_COUNT:-${SHARDS:?set SHARDS to the number of parts}}
part=$3/part-$index.calib
[ ! -e "$part" ] || exit 0
mkdir -p "$3"
exec "${TARE:-tare}" calibrate "$1" --data "$2" --shard "$index/$count" -o "$part" --resume --quiet
