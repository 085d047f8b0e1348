#!/usr/bin/env python3
"""Writes docs/python-reference.md from the docstrings of the Python package (a test compares the two):
PYTHONPATH=build/python scripts/make-python-reference.py > docs/python-reference.md"""
import inspect
import re
import sys

import tare

HEAD = """# Python reference

Written from the docstrings by `scripts/make-python-reference.py`; [python.md](python.md) has the tutorial. Examples are tests: `glyphs`
is the folder examples/glyphs, `model` its model, `images` and `labels` its data as arrays, and `tmp` a temporary folder.
"""
SECTIONS = (
    ("Models", ["load", "Model", "Signature", "TensorSpec", "Function"]),
    ("Calibration", ["calibrate", "Calibration", "Ranges", "Histogram"]),
    ("Comparison", ["compare", "Comparison", "Metric"]),
    ("Cloud TPU", ["tpu.report", "tpu.Report"]),
    ("Differences and validity", ["diff", "Difference", "validate"]),
    ("Batches", ["batch", "BatchResult"]),
    ("Data, settings and tables", ["read_records", "write_records", "setting", "Setting", "float32_to_bfloat16", "bfloat16_to_float32", "Table"]),
    ("Errors and warnings", ["Error", "Status", "TareWarning"]),
)


def lookup(name):
    value = tare
    for part in name.split("."):
        value = getattr(value, part)
    return value


def signature(name, value):
    """The call, without annotations: the text explains the types."""
    found = inspect.signature(value)
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name not in ("self", "cls")]
    return f"{name}{found.replace(parameters=parameters, return_annotation=inspect.Signature.empty)}"


def body(text):
    """A docstring of NumPy's form as Markdown."""
    lines = []
    source = inspect.cleandoc(text).splitlines()
    code = False
    for line, following in zip(source, [*source[1:], ""]):
        if re.fullmatch(r"-{3,}", line):
            continue
        if re.fullmatch(r"-{3,}", following):
            lines.append(f"**{line}**\n")
            continue
        if line.startswith(">>> ") and not code:
            lines.append("```pycon")
            code = True
        if code and not line.strip():
            lines.append("```")
            code = False
        item = re.fullmatch(r"(\*{0,2}\w[\w, *]*?)( : (.*))?", line)
        if not code and item and following.startswith("    "):
            names, kind = item.group(1), item.group(3)
            line = f"- `{names}`" + (f" ({kind.replace('``', '`')}):" if kind else ":")
        elif not code:
            line = re.sub(r"^    (?=\S)", "  ", line).replace("``", "`")
        lines.append(line)
    if code:
        lines.append("```")
    return "\n".join(lines)


def members(value):
    for name, item in vars(value).items():
        if not name.startswith("_") and (callable(item) or isinstance(item, (property, classmethod))):
            yield name, item


def write(out, name):
    value = lookup(name)
    text = inspect.getdoc(value)
    call = inspect.isfunction(value) or name in ("Table",)
    out.append(f"### tare.{name}\n")
    if call and inspect.isfunction(value):
        out.append(f"```\ntare.{signature(name, value)}\n```\n")
    out.append(body(text) + "\n")
    if not inspect.isclass(value):
        return
    for member, item in members(value):
        if issubclass(value, BaseException) or name == "Status":
            continue
        documented = getattr(value, member) if isinstance(item, classmethod) else item
        if isinstance(item, property):
            out.append(f"#### {name}.{member}\n")
        else:
            out.append(f"#### {signature(f'{name}.{member}', documented)}\n")
        out.append(body(inspect.getdoc(documented) or "") + "\n")


def errors(out):
    out.append("| exception | bases | meaning |\n|---|---|---|")
    for name in tare.__all__:
        value = getattr(tare, name)
        if inspect.isclass(value) and issubclass(value, tare.Error) and value is not tare.Error:
            bases = ", ".join(f"`{base.__name__}`" for base in value.__bases__)
            out.append(f"| `{name}` | {bases} | {' '.join(inspect.getdoc(value).split())} |")


def main():
    out = [HEAD]
    listed = {name for _, names in SECTIONS for name in names}
    for title, names in SECTIONS:
        out.append(f"## {title}\n")
        for name in names:
            write(out, name)
    errors(out)
    missing = [n for n in tare.__all__ if n not in listed and n != "tpu"
               and not (inspect.isclass(getattr(tare, n)) and issubclass(getattr(tare, n), tare.Error))]
    if missing:
        sys.exit(f"make-python-reference: no section has {', '.join(missing)}")
    print("\n".join(out))


if __name__ == "__main__":
    main()
