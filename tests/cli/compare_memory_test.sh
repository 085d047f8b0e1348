#!/usr/bin/env bash
# Memory of compare grows neither with the data file nor with the number of records.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
model=$glyphs/saved_model
data=(--data "$glyphs/eval.tfrecord.gz" --limit 100 --quiet)
samples=$glyphs/calibration.tfrecord.gz

# Memory does not grow with the data file: 10 records of a file with 400 MB after them, which is hashed for the report, and of
# the file without them. A sanitizer adds an eighth of what is mapped.
most_growth=50
sanitized && most_growth=150
gzip -dc "$glyphs/eval.tfrecord.gz" >"$work/small.tfrecord"
cp "$work/small.tfrecord" "$work/large.tfrecord"
truncate -s 400M "$work/large.tfrecord"
python3 - "$tare" "$model" "$work" $most_growth <<'PY' || fail "compare holds its data file in memory"
import resource, subprocess, sys
tare, model, work, most_growth = sys.argv[1:]
def peak(data):
    subprocess.run([tare, "compare", model, "--data", f"{work}/{data}.tfrecord", "--limit", "10", "--methods", "weight_only", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 # of all processes until now
small, large = peak("small"), peak("large")
assert large < small + int(most_growth), f"{small:.0f} MB, then {large:.0f} MB"
PY
rm -f "$work/large.tfrecord"

# Nor with the records: labels, scores, errors and outputs of each are in files, of which 2 MiB are mapped at a time;
# heaps grow by a few MiB. Sanitizers
# keep what is freed.
if ! sanitized; then
"$TARE_TEST_HELPERS/op_model" chain "$work/product" "$TARE_TEST_PLUGINS/everything.so" MatMul / || fail "op_model"
python3 - "$tare" "$TARE_TEST_HELPERS/peak" "$work" <<'PY' || fail "compare holds figures of each record in memory"
import struct, subprocess, sys
tare, peak, work = sys.argv[1:4]
def array(name, type, shape, values):
    header = repr({"descr": type, "fortran_order": False, "shape": shape}).encode()
    header += b" " * (117 - len(header)) + b"\n"
    with open(f"{work}/{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values)
    return f"{name}={work}/{name}.npy"
def peak_of(count):
    numbers = [i * 2654435761 % 1000003 / 500000 - 1 for i in range(2 * count)]
    x = array("x", "<f4", (count, 1, 2), struct.pack(f"<{2 * count}f", *numbers))
    label = array("label", "<i8", (count,), struct.pack(f"<{count}q", *[n > 0 for n in numbers[::2]]))
    subprocess.run([tare, "dataset", "make", "--input", x, "--input", label, "-o", f"{work}/{count}.tfrecord", "--quiet"], check=True)
    subprocess.run([peak, f"{work}/peak", tare, "compare", f"{work}/product", "--data", f"{work}/{count}.tfrecord", "--methods", "weight_only",
                    "--min-elements", "1", "--target", "x", "--threads", "2", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    return int(open(f"{work}/peak").read().split()[0]) >> 10
few, many = peak_of(50000), peak_of(200000)
assert many <= few + 10, f"{few} MB of 50,000 records, {many} MB of 200,000"
PY
rm -f "$work"/*000.tfrecord
fi
finish
