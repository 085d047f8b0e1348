#!/bin/sh
# slurm.sh MODEL DATA FOLDER [PARTS]: submits a calibration in PARTS (default 8) parts as a job array, and a job that merges them into
# FOLDER/all.calib when all have succeeded. MODEL, DATA (a quoted pattern) and FOLDER are on a file system that all nodes have.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
parts=${4:-8}
array=$(sbatch --parsable --job-name=calibrate --array="0-$((parts - 1))" --cpus-per-task=8 --mem=8G --requeue \
    "$here/calibrate_shard.sh" "$1" "$2" "$3")
sbatch --job-name=merge --dependency="afterok:$array" "$here/merge_parts.sh" "$3" "$parts"
