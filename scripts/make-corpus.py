#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets: small files of every format, generated here or by the programs of the build.

    make-corpus.py BUILD_DIR OUT        OUT/TARGET/seed-…; scripts/fuzz.sh adds what fuzzing finds

Checksums are left out where tests/fuzz/repair.c knows them: fuzz_replay --repair sets them.
"""
import io
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

import numpy as np

from protobuf_wire import field, fields, varint

ROOT = pathlib.Path(__file__).resolve().parent.parent


# ---- protobuf ----

def parts(*files):
    return b"".join(field(i + 1, data) for i, data in enumerate(files))


# ---- records ----

def example(features):
    kinds = {bytes: 1, float: 2, int: 3}
    entries = b""
    for key, values in features.items():
        kind = kinds[type(values[0])]
        if kind == 1:
            items = b"".join(field(1, value) for value in values)
        elif kind == 2:
            items = field(1, struct.pack(f"<{len(values)}f", *values))
        else:
            items = field(1, b"".join(varint(value) for value in values))
        entries += field(1, field(1, key) + field(2, field(kind, items)))
    return entries


def tf_example(features):
    return field(1, example(features))


def sequence_example(context, lists):
    out = b""
    for key, steps in lists.items():
        features = b""
        for values in steps:
            features += field(1, field(2, field(1, struct.pack(f"<{len(values)}f", *values))))
        out += field(1, field(1, key) + field(2, features))
    return field(1, example(context)) + field(2, out)


def tfrecords(*records):
    return b"".join(struct.pack("<QI", len(data), 0) + data + bytes(4) for data in records)


# ---- images ----

def png(width, height, colour, depth, rows, palette=None):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    out = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    if palette:
        out += chunk(b"PLTE", palette)
    return out + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def bmp(width, height, bits):
    row = (width * bits // 8 + 3) // 4 * 4
    pixels = bytes(i * 7 % 256 for i in range(row * height))
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + len(pixels), 0, 54, 40, width, height, 1, bits, 0, len(pixels), 1, 1, 0, 0) + pixels


def gif(frames):
    """2 x 2 pixels; a clear code before every two keeps all codes at three bits."""
    codes = [4, 0, 1, 4, 2, 3, 5]
    bits = sum(code << (3 * i) for i, code in enumerate(codes))
    data = bits.to_bytes(3, "little")
    out = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + bytes(range(12))
    for _ in range(frames):
        out += b"!\xf9\x04" + struct.pack("<BHB", 0, 5, 0) + b"\0"
        out += b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\x02" + bytes([len(data)]) + data + b"\0"
    return out + b";"


def jpeg(components, progressive=False):
    """8 x 8 pixels of one colour: every coefficient is zero, so each block is two one-bit codes."""
    def segment(marker, data):
        return bytes([0xFF, marker]) + struct.pack(">H", len(data) + 2) + data

    table = bytes([1] + [0] * 15) + b"\0"  # one code of one bit, for the symbol 0
    ids = range(1, components + 1)
    out = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64))
    out += segment(0xC2 if progressive else 0xC0, struct.pack(">BHHB", 8, 8, 8, components) + b"".join(bytes([i, 0x11, 0]) for i in ids))
    out += segment(0xC4, b"\0" + table) + segment(0xC4, b"\x10" + table)
    last = 0 if progressive else 63
    out += segment(0xDA, bytes([components]) + b"".join(bytes([i, 0]) for i in ids) + bytes([0, last, 0]))
    used = components * (1 if progressive else 2)
    return out + bytes([0xFF >> used]) + b"\xff\xd9"


def images():
    gray = b"".join(b"\0" + bytes([i * 16, 255 - i]) for i in range(2))
    rgb = b"".join(b"\1" + bytes(range(9)) for _ in range(3))
    return {
        "gray.png": png(2, 2, 0, 8, gray),
        "rgb.png": png(3, 3, 2, 8, rgb),
        "rgba16.png": png(1, 1, 6, 16, b"\0" + bytes(range(8))),
        "palette.png": png(4, 1, 3, 2, b"\0\x1b", bytes(range(12))),
        "rgb.bmp": bmp(3, 2, 24),
        "rgba.bmp": bmp(2, 2, 32),
        "one.gif": gif(1),
        "three.gif": gif(3),
        "gray.jpg": jpeg(1),
        "rgb.jpg": jpeg(3),
        "progressive.jpg": jpeg(1, progressive=True),
    }


# ---- arrays ----

def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(arrays, compression):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(array), compression)
    return out.getvalue()


def arrays():
    wide = np.array(["ab", "cde"])
    files = {f"npy/{dtype}": npy(np.arange(6, dtype=dtype).reshape(3, 2)) for dtype in ("<f4", ">f8", "|u1", "<i8", "<f2", "<c8")}
    files = {name.replace("<", "little_").replace(">", "big_").replace("|", ""): data for name, data in files.items()}
    files["npy/text"] = npy(wide)
    files["npy/bytes"] = npy(wide.astype("S"))
    files["npy/fortran"] = npy(np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)))
    files["npy/empty"] = npy(np.zeros((0, 4), np.float32))
    both = {"x": np.arange(4, dtype=np.float32).reshape(2, 2), "y": np.arange(2, dtype=np.int32)}
    files["npz/stored"] = npz(both, zipfile.ZIP_STORED)
    files["npz/deflated"] = npz(both, zipfile.ZIP_DEFLATED)
    return files


# ---- chunked models ----

def riegeli(records):
    """One chunk of uncompressed records."""
    def chunk(kind, count, decoded, data):
        return bytes(8) + struct.pack("<QQQQ", len(data), 0, count << 8 | ord(kind), decoded) + data

    sizes = b"".join(varint(len(record)) for record in records)
    data = b"\0" + varint(len(sizes)) + sizes + b"".join(records)
    decoded = sum(len(record) for record in records)
    return bytes(16) + struct.pack("<Q", 64) + chunk("s", 0, 0, b"") + chunk("r", len(records), decoded, data)


def chunked(model):
    """The SavedModel with its first MetaGraph (field 2) in a record of its own, and one that is whole."""
    rest = b"".join(whole for number, _, whole in fields(model) if number != 2)
    meta = next(payload for number, payload, _ in fields(model) if number == 2)

    def info(data, position):
        return field(2, field(1, 1) + field(2, len(data)) + field(3, position))

    split = field(1, 0) + field(2, field(1, field(1, 2)) + field(1, field(3, 0)) + field(3, field(1, 1)))
    index = info(rest, 64) + info(meta, 65) + field(3, split)
    return {"split": riegeli([rest, meta, index]), "whole": riegeli([model, info(model, 64) + field(3, field(1, 0))])}


# ---- text ----

SPECS = {
    "image": ('input { name: "x" feature: "i" image { channels: 3 step { resize { shorter_side: 4 } } step { crop { height: 2 width: 2 } } } mean: 127.5 std: 2 }\n'
              'label { feature: "c" mean: 1 type: INT64 }', {"i": [png(3, 3, 2, 8, b"".join(b"\0" + bytes(range(9)) for _ in range(3)))], "c": [2]}),
    "letterbox": ('input { name: "x" feature: "i" image { channels: 3 step { resize { longer_side: 4 antialias: true } } step { pad { height: 4 width: 6 value: 114 } } step { resize { height: 5 width: 3 pad: 1 convention: PIL method: BICUBIC } } } }',
                  {"i": [png(3, 2, 2, 8, b"".join(b"\0" + bytes(range(9)) for _ in range(2)))]}),
    "raw": ('input { name: "x" feature: "r" source: RAW raw_type: UINT8 type: FLOAT32 shape: [2, 2, 3] scale: 0.5 channels_first: true }', {"r": [bytes(range(12))]}),
    "length": ('input { name: "ids" type: INT32 length { rows: 4 value: -1 front: true } }\ninput { name: "s" source: BYTES default_value: 0 }', {"ids": [1, 2, 3], "s": [b"a"]}),
    "columns": ('input { name: "f" column: "a" column: "b" shape: 2 type: FLOAT16 }\nlabel { feature: "k" class_name: "u" class_name: "v" }', {"a": [1.5], "b": [2.5], "k": [b"v"]}),
}

#: Patterns of TensorFlow Text and others, with a text.
PATTERNS = {
    "split": (r"\s+|[!-/]|[:-@]|[\[-`]|[{-~]|[\p{P}]", "a-b, c"),
    "bert": (r"([!-/]|[:-@]|\[-`]|[{-~]|[\p{P}]|[\x{4E00}-\x{9FFF}])", "\u4e00x"),
    "groups": (r"(?i)^(?P<a>ab*?)(?:c{2,3}|[^d\W])\b$", "ABcc"),
    "quoted": (r"\Qa.b\E[[:alpha:][:^digit:]]\pL\PN\C", "a.bxé"),
}

TEXTS = {
    "options/batch": 'tpu_functions { function_alias: "f" }\nbatch_options { num_batch_threads: 2 max_batch_size: 8 batch_timeout_micros: 100 allowed_batch_sizes: [2, 4, 8] }\n'
                     'bfloat16_optimization: ENABLED bfloat16_optimization_options { scope: ALL filterlist: "Add" }\n',
    "options/quantize": 'external_feature_configs { quantization_options { signature_keys: "serving_default" quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 } '
                        'calibration_options { calibration_method: CALIBRATION_METHOD_MIN_MAX } } }\nio_shape_optimization: DISABLED\n',
    "options/sharding": 'tpu_functions { jit_compile_functions: true } xla_sharding_options { num_cores_per_replica: 2 } disable_default_optimizations: true\n',
    "recipe/rules": '# comment\nop=Conv2D -> static granularity=per_channel\nname=".*dense_(1|2)/.*" op=MatMul -> weight_only bits=4 granularity=per_block:64\n'
                    'function=__inference_head_.* -> float\nname=.*stem.* -> algorithm=percentile:p=99.9 symmetric=true\npasses=equalization,weight_clipping\n',
    "jobs/two": 'defaults { data: "d.tfrecord" evaluation: "e.tfrecord" limits { max_drop: 1.5 min_sqnr_db: 20 } }\n'
                'job { name: "a" model: "a" output: "a.out" method: "static" }\njob { name: "b" model: "b" output: "b.out" converter_options: "tpu_functions { function_alias: \\"f\\" }" arguments: "--batch=2" }\n',
    "state/done": '{"name": "a", "outcome": "done", "output": "out/a", "output_hash": "12", "key": "34", "run": "", "top1": 0.5, "sqnr_db": "exact", "records": 7, '
                  '"size_bytes": 100, "float_bytes": 400, "peak_bytes": 1000, "attempts": 1, "seconds": 0.25}\n',
    "state/failed": '{"name": "b", "outcome": "failed", "reason": "no", "key": "", "attempts": 2, "seconds": 1}\n',
    "csv/comma": 'age,city,class\n31,"a, b",0\n44,c,1\n,d,2\n',
    "csv/tab": 'x\ty\n1.5\t2\n-3e5\t4\n',
}


# ---- files of the build ----

def models(build, work):
    """SavedModels from the generators of the tests, with their records: name -> (folder, records)."""
    out = {}
    for seed in (1, 2, 4, 5, 7):
        folder, records = work / f"network{seed}", work / f"network{seed}.tfrecord"
        subprocess.run([build / "tests/helpers/random_network", str(seed), folder, records], check=True, stdout=subprocess.DEVNULL)
        out[f"network{seed}"] = (folder, records)
    for form in ("main", "function", "captures"):
        folder = work / form
        subprocess.run([build / "tests/helpers/graph_model", form, folder, "6", "short"], check=True, stdout=subprocess.DEVNULL)
        out[form] = (folder, None)
    return out


def tare(build, work, *arguments):
    """Runs tare in the folder: with relative paths, a calibration does not depend on where that is. Returns what it prints."""
    command = [build / "tare", *map(str, arguments), "--quiet"]
    return subprocess.run(command, cwd=work, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def model_files(folder):
    variables = folder / "variables"
    names = (folder / "saved_model.pb", variables / "variables.index", variables / "variables.data-00000-of-00001")
    return [path.read_bytes() if path.exists() else b"" for path in names]


def generated(build, work):
    files = {}
    for name, (folder, records) in models(build, work).items():
        graph, index, data = model_files(folder)
        files[f"execute/{name}"] = parts(graph, index, data)
        if records is None:
            files[f"saved_model/{name}"] = graph
            files.update({f"chunked/{name}_{form}": data for form, data in chunked(graph).items()})
            continue
        files[f"checkpoint/{name}"] = parts(index, data)
        files[f"tfrecord/{name}"] = records.read_bytes()[:700]
        shutil.rmtree(work / "quantized", ignore_errors=True)
        tare(build, work, "calibrate", folder.name, "--data", records.name, "-o", "calibration", "--limit", "2", "--channels")
        tare(build, work, "quantize", folder.name, "quantized", "--calibration", "calibration")
        files[f"calibration/{name}"] = (work / "calibration").read_bytes()
        files[f"execute/{name}_int8"] = parts(*model_files(work / "quantized"))
    for path in sorted((ROOT / "tests/golden/stablehlo").iterdir()):
        if path.suffix not in (".mlirbc", ".jaxexport"):
            continue
        files[f"module/{path.name}"] = files[f"export/{path.name}"] = path.read_bytes()
        tare(build, work, "unwrap", path, path.name)
        model = parts(*model_files(work / path.name))
        if len(model) < 6000:
            files[f"execute/{path.stem}"] = model
    glyphs = ROOT / "examples/glyphs"
    reports = []
    for methods in ("weight_only", "weight_only,bfloat16"):
        text = tare(build, work, "compare", glyphs / "saved_model", "--data", glyphs / "eval.tfrecord.gz", "--limit", "3", "--methods", methods, "--json")
        reports.append(json.dumps({**json.loads(text), "quality": None}, separators=(",", ":")).encode())
    files["diff/comparisons"] = parts(*reports)
    batch = '{"title":"j","jobs_total":1,"results":[%s]}'
    files["diff/batches"] = parts(*((batch % TEXTS[f"state/{name}"].strip()).encode() for name in ("done", "failed")))
    files["saved_model_text/guide"] = (ROOT / "tests/models/function_guide/saved_model.pbtxt").read_bytes()
    return files


def main():
    build, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    files = {name: text.encode() for name, text in TEXTS.items()}
    files.update(arrays())
    files.update({f"image/{name}": data for name, data in images().items()})
    for name, (spec, features) in SPECS.items():
        files[f"example/{name}"] = parts(spec.encode(), tf_example(features))
    for name, (pattern, text) in PATTERNS.items():
        files[f"pattern/{name}"] = parts(pattern.encode(), text.encode())
    frames = 'input { name: "f" feature: "r" shape: [2, 2] type: FLOAT32 }'
    files["example/sequence"] = parts(frames.encode(), sequence_example({"c": [1]}, {"r": [[1.0, 2.0], [3.0, 4.0]]}))
    files["tfrecord/example"] = tfrecords(tf_example({"a": [1.5, 2.5], "b": [b"x"]}), tf_example({"c": [7]}))
    files["tfrecord/gzip"] = zlib.compress(files["tfrecord/example"], wbits=31)
    with tempfile.TemporaryDirectory() as work:
        files.update(generated(build, pathlib.Path(work)))
    for name, data in sorted(files.items()):
        target, _, rest = name.partition("/")
        path = out / target / f"seed-{rest}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name != "tfrecord/gzip":
            subprocess.run([build / "tests/fuzz_replay", "--repair", target, path], check=True)
    print(f"{len(files)} files, {sum(map(len, files.values()))} bytes")


if __name__ == "__main__":
    main()
