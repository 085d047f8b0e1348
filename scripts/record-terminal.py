#!/usr/bin/env python3
"""record-terminal.py TARE [--check]: runs the session of the README with the program TARE and writes its output to docs/terminal.svg.
--check: compares with the existing picture instead, ignoring times; exit status 1 if they differ."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "terminal.svg"
SESSION = [
    "tare calibrate saved_model --data calibration.tfrecord.gz -o glyphs.calib --quiet",
    "tare compare saved_model --calibration glyphs.calib --eval eval.tfrecord.gz \\\n"
    "      --methods static,dynamic,weight_only,bfloat16 --algorithms min_max,mse",
    "tare convert saved_model tpu_model --calibration glyphs.calib --quiet \\\n"
    "      --converter_options_string='tpu_functions { function_alias: \"tpu_func\" }'",
    "tare run tpu_model --data eval.tfrecord.gz --limit 2",
]
WIDTH, HEIGHT, MARGIN = 6.65, 15, 14  # width of a character of 11 px, in pixels
COLUMNS = 120  # of the terminal; wider text is unreadable on a page


def on_terminal(command, **options):
    """Returns exit status, output on a terminal of COLUMNS columns, and standard error."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    with subprocess.Popen(command, stdout=its, stderr=subprocess.PIPE, **options) as process:
        os.close(its)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # the other end is closed
            pass
        errors = process.stderr.read().decode()
    os.close(ours)
    return process.returncode, text.decode().replace("\r\n", "\n"), errors


def record(tare):
    """Returns (is typed, text) for each line of the terminal, without progress, which depends on the machine."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("saved_model", "calibration.tfrecord.gz", "eval.tfrecord.gz"):
            os.symlink(ROOT / "examples" / "glyphs" / name, Path(folder) / name)
        os.symlink(Path(tare).resolve(), Path(folder) / "tare")
        for command in SESSION:
            status, text, errors = on_terminal(["bash", "-c", command], cwd=folder,
                                               env={**os.environ, "PATH": folder + ":" + os.environ["PATH"], "NO_COLOR": "1"})
            if status != 0:
                sys.exit(f"record-terminal: {command}: {errors}")
            lines += [(True, ("$ " if i == 0 else "") + typed) for i, typed in enumerate(command.split("\n"))]
            for line in text.rstrip("\n").split("\n") if text else []:
                lines += [(False, line[at:at + COLUMNS]) for at in range(0, max(len(line), 1), COLUMNS)]
    return lines


def picture(lines):
    width = max(len(text) for _, text in lines) * WIDTH + 2 * MARGIN
    height = (len(lines) + 1) * HEIGHT + MARGIN
    rows = "\n".join(f'<text x="{MARGIN}" y="{MARGIN + (i + 1) * HEIGHT}"{" class=" + chr(34) + "typed" + chr(34) if typed else ""}>'
                     f"{escape(text, quote=False)}</text>" for i, (typed, text) in enumerate(lines))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" xml:space="preserve">\n'
            "<style>text { font: 11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d8dee9; white-space: pre }"
            f" .typed {{ fill: #a3d977 }}</style>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#22262e\"/>\n{rows}\n</svg>\n")


def stable_lines(svg):
    """Returns the lines of a picture without machine-dependent text: the last column of tables, and times."""
    lines = re.findall(r"<text [^>]*>(.*)</text>", svg)
    return [re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "TIME", re.sub(r" +(\d+\.\d+|seconds here)$", "", line)) for line in lines]


svg = picture(record(sys.argv[1]))
if "--check" not in sys.argv:
    PICTURE.write_text(svg)
elif stable_lines(svg) != stable_lines(PICTURE.read_text()):
    old = stable_lines(PICTURE.read_text())
    print("docs/terminal.svg differs from the output of the program (update it with scripts/record-terminal.py build/tare):")
    print("\n".join(f"- {a}\n+ {b}" for a, b in zip(old, stable_lines(svg)) if a != b) or f"{len(old)} lines (now {len(stable_lines(svg))})")
    sys.exit(1)
