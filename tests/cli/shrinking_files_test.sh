#!/usr/bin/env bash
# Files that become shorter while a command reads them: one line that names the file, status 1, and no output.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
sanitized && skip "the sanitizer's runtime does not allow another preloaded library"
fault=$TARE_BUILD_DIR/tests/faults/shrink.so
model=$glyphs/saved_model
data=$glyphs/calibration.tfrecord.gz
cd "$work" || exit 1

# shrinking FILE SIZE COMMAND…: the file is truncated to SIZE bytes after it was mapped or first read, and restored after.
shrinking() {
    local file=$1 size=$2
    shift 2
    cp "$file" whole
    expect 1 "$(basename "$file")" timeout 60 env LD_PRELOAD="$fault" TARE_SHRINK="$(realpath "$file")" TARE_SHRINK_TO="$size" "$@"
    [ "$(stat -c %s "$file")" -le "$size" ] || fail "$* to $size: $file was not truncated"
    cp whole "$file"
}
shorter() { grep -q "became shorter" stderr || fail "$1: the reason is not in: $(cat stderr)"; }

# a large model file: 3 MB of an unknown field of the message, which every reader must pass over
cp -r "$model" m
python3 - <<'EOP'
size, varint = 3 << 20, b""
while size > 127:
    varint, size = varint + bytes([size & 127 | 128]), size >> 7
open("m/saved_model.pb", "ab").write(b"\x7a" + varint + bytes([size]) + b"x" * (3 << 20))
with open("m/variables/variables.data-00000-of-00001", "ab") as file: # as if more variables followed
    file.write(b"x" * (2 << 20))
EOP
"$tare" validate m >/dev/null || fail "the padded model is not valid: $("$tare" validate m)"
weights=m/variables/variables.data-00000-of-00001
for size in 0 5000 1000000 3100000; do
    shrinking m/saved_model.pb $size "$tare" validate m
    shorter "validate, model of $size"
    shrinking m/saved_model.pb $size "$tare" copy m out
    shorter "copy, model of $size"
    absent out
done
for command in "quantize m out --method weight_only --quiet" "convert m out --quiet" "copy m out" "run m --data $data --limit 3 --quiet" "calibrate m --data $data -o out.calib --quiet" \
    "compare m --data $data --quiet" "run m --data $data --output-dir out --quiet"; do
    shrinking $weights 0 "$tare" $command
    shorter "$command"
    absent out
    absent out.calib
done

# a file of a StableHLO module with a constant of 2 MB
"$TARE_TEST_HELPERS/large_module" module.mlirbc 2000000 || fail "large_module"
"$tare" run module.mlirbc --quiet >/dev/null 2>err || fail "run of the whole module: $(cat err)"
for size in 0 5000 1990000; do
    for command in "run module.mlirbc --quiet" "unwrap module.mlirbc out --quiet" "inspect module.mlirbc"; do
        shrinking module.mlirbc $size "$tare" $command
        shorter "$command, module of $size"
        absent out
    done
done

# arrays, mapped (3 MB) and small
python3 - <<'EOP'
def npy(path, rows):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 12, 12, 1), }" % rows
    head += " " * (118 - len(head)) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + bytes([119, 0]) + head.encode() + b"\0" * (rows * 576))
npy("large.npy", 6000)
npy("small.npy", 10)
import zipfile
with zipfile.ZipFile("large.npz", "w") as z:
    z.write("large.npy", "image.npy")
EOP
"$tare" run "$model" --input image=small.npy --quiet >shape 2>&1 || true
for size in 0 60 2000000; do
    shrinking large.npy $size "$tare" dataset make --input image=large.npy -o out.tfrecord --quiet
    shorter "npy of $size"
    shrinking large.npz $size "$tare" dataset make large.npz -o out.tfrecord --quiet
    shorter "npz of $size"
    absent out.tfrecord
done
# what is read, not mapped: an incomplete file is an error as well
export TARE_SHRINK_READ=1
shrinking small.npy 60 "$tare" dataset make --input image=small.npy -o out.tfrecord --quiet
"$tare" dataset make "$data" -o records.tfrecord --quiet || fail "dataset make"
shrinking records.tfrecord 5000 "$tare" calibrate "$model" --data records.tfrecord -o out.calib --quiet
cp "$data" records.tfrecord.gz
shrinking records.tfrecord.gz 5000 "$tare" calibrate "$model" --data records.tfrecord.gz -o out.calib --quiet
absent out.calib
"$tare" calibrate "$model" --data "$data" -o good.calib --quiet || fail "calibrate"
shrinking good.calib 3000 "$tare" quantize "$model" out --calibration good.calib --quiet
absent out
finish
