#!/usr/bin/env bash
# The commands of README and of the pages that users begin with, in their order, each page in a folder of its own with the example or
# small networks of the kinds that the pages are about, and with records for them.
set -uo pipefail
. "$TARE_SOURCE_DIR/tests/cli/support.sh"
command -v python3 >/dev/null || skip "python3"
cd "$work" || exit 1

# ---- models and records ----
mkdir README.md getting-started.md recipes.md quantization.md converter.md
cp -r "$glyphs/saved_model" README.md/my_model
gzip -dc "$glyphs/calibration.tfrecord.gz" >README.md/samples.tfrecord
gzip -dc "$glyphs/eval.tfrecord.gz" >README.md/eval.tfrecord
cp -r "$glyphs/saved_model" README.md/classifier
cp -r "$glyphs/saved_model" getting-started.md/classifier
for page in quantization.md converter.md; do cp -r README.md/{my_model,samples.tfrecord,eval.tfrecord} "$page"; done
"$tare" dataset head "$glyphs/eval.tfrecord.gz" --values 784 --json --limit 1000 >records.json || fail "head: $?"
for model in README.md/heart=table getting-started.md/kws=audio recipes.md/spam=text recipes.md/heart=table recipes.md/unet=mask recipes.md/detector=mask \
    recipes.md/kws=audio recipes.md/streaming=stream recipes.md/MODEL=text; do
    "$TARE_TEST_HELPERS/page_model" "${model#*=}" "${model%=*}" || fail "page_model $model"
done
python3 - "$tare" <<'PY' || fail "no records: $?"
import json, os, pathlib, random, struct, subprocess, sys, zlib
tare = sys.argv[1]
draw = random.Random(3)

def npy(path, code, shape, values):
    header = repr({"descr": "<" + {"f": "f4", "q": "i8"}[code], "fortran_order": False, "shape": shape})
    header += " " * (53 - len(header) % 64 + 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                                   struct.pack(f"<{len(values)}{code}", *values))

def floats(path, *shape):
    count = 1
    for size in shape:
        count *= size
    npy(path, "f", shape, [draw.gauss(0, 1) for _ in range(count)])

def integers(path, below, *shape):
    count = 1
    for size in shape:
        count *= size
    npy(path, "q", shape, [draw.randrange(below) for _ in range(count)])

def make(out, **arrays):
    inputs = [word for key, path in arrays.items() for word in ("--input", f"{key}={path}")]
    subprocess.run([tare, "dataset", "make", *inputs, "-o", out, "--quiet"], check=True)

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

def image(folder, record, name):
    pixels = [round(255 * min(1, max(0, x))) for x in record["inputs"]["image"]["values"]]
    folder += "/digit_%d" % record["inputs"]["label"]["values"][0]
    os.makedirs(folder, exist_ok=True)
    raw = b"".join(b"\0" + bytes(pixels[28 * row:28 * row + 28]) for row in range(28))
    pathlib.Path(f"{folder}/{name}.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))

for i, record in enumerate(json.load(open("records.json"))):
    image("README.md/images/test", record, f"{i:04}")
    if i < 300:
        image("getting-started.md/images", record, f"{i:04}")
        image("README.md/images/train", record, f"{i:04}")

for page in ("getting-started.md", "recipes.md"):
    floats(f"{page}/mfcc.npy", 200, 49, 10, 1)
    floats(f"{page}/mfcc_eval.npy", 60, 49, 10, 1)
    integers(f"{page}/classes.npy", 12, 60)
os.chdir("recipes.md")
for name, count in (("calibration", 220), ("eval", 60)):
    integers("ids.npy", 200, count, 8)
    integers("label.npy", 2, count)
    make(f"spam_{name}.tfrecord.gz", ids="ids.npy", label="label.npy")
    floats("image.npy", count, 16, 16, 1)
    floats("target.npy", count, 16, 16, 1)
    make(f"unet_{name}.tfrecord.gz", image="image.npy", target="target.npy")
    if name == "eval":
        make("eval.tfrecord", image="image.npy")
    folder = {"calibration": "clips", "eval": "eval"}[name]
    os.makedirs(folder)
    for clip in range(2):
        floats("x.npy", count // 2, 16)
        make(f"{folder}/{clip}.tfrecord", x="x.npy")
def table(path, rows):
    with open(path, "w") as file:
        file.writelines(",".join(map(str, row)) + "\n" for row in [("age", "cholesterol", "oldpeak", "label")[:len(rows[0])], *rows])

table("heart.csv", [(draw.randrange(30, 80), round(draw.gauss(200, 40), 1), round(draw.random() * 4, 2), draw.randrange(2)) for _ in range(300)])
os.chdir("../README.md")
rows = [[round(draw.gauss(0, 1), 3) for _ in range(3)] for _ in range(2000)]
table("train.csv", rows[:250])
table("test.csv", rows)
run = lambda *words: subprocess.run([tare, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
run("dataset", "info", "test.csv", "--draft-spec", "unlabelled.spec", "--model", "heart")
run("run", "heart", "--data", "test.csv", "--spec", "unlabelled.spec", "--output-dir", "outputs")
scores = struct.unpack("<2000f", next(pathlib.Path("outputs").glob("*.npy")).read_bytes()[-8000:])  # the labels are what the model says
table("test.csv", [[*row, int(score > 0.5)] for row, score in zip(rows, scores)])
PY
# A bucket, and programs that read it.
mkdir bin
for name in calibration-0 requests samples; do gzip -dc recipes.md/spam_eval.tfrecord.gz >"recipes.md/$name.tfrecord"; done
# shellcheck disable=SC2016
printf '#!/bin/sh\ncat ${3#??://bucket/}\n' >bin/gcloud && cp bin/gcloud bin/aws && chmod +x bin/gcloud bin/aws
PATH=$work/bin:$PATH
python=$(python3 -c 'import sys; print(sys.executable)') # a wrapper of it would put other folders in front
"$tare" calibrate recipes.md/detector --data recipes.md/unet_calibration.tfrecord.gz -o recipes.md/detector.calib --quiet || fail "calibrate: $?"

# ---- the pages ----
# page FILE COMMANDS OPTION…: at least so many commands run, and none fails.
page() {
    local file=$1 least=$2
    shift 2
    (cd "$(basename "$file")" && "$python" "$source_dir/scripts/run-page.py" "$source_dir/$file" "$@") >found 2>&1 || fail "$(cat found)"
    [ "$(sed -nE 's/.*: .*\b([0-9]+) commands.*/\1/p' found)" -ge "$least" ] || fail "$file: expected $least commands: $(cat found)"
}
page README.md 8 --skip "tare check" # which needs the TPU compiler
page docs/getting-started.md 20
page docs/recipes.md 25
page docs/quantization.md 7 --skip "--for" # which needs the TPU compiler
page docs/converter.md 4
finish
