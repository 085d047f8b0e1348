#!/usr/bin/env python3
"""make-python-types.py PROGRAM [--check]: rewrites what python/tare/_types.py has from the tables of the program: the names of
algorithms, passes, measures and chips, methods with the usual settings, and the options of layers (class _Layers). With --check, only
compares (a test does)."""
import re
import subprocess
import sys
import textwrap
from pathlib import Path

WIDTH = 140
# A type checker knows no patterns of strings: what people write as one is listed, the rest is written by tare.setting.
SETTINGS = {
    "static": (":bits=4", ":activation_bits=16"),
    "dynamic": (":bits=4",),
    "weight_only": (":bits=4", ":bits=4:block=32"),
}
PATH = Path(__file__).resolve().parent.parent / "python" / "tare" / "_types.py"
# Options of layers are those that quantize, convert and compare share, without these: parameters of the functions, and options
# that have a class of their own.
OTHER = """algorithm passes auto max-drop min-sqnr max-mae max-size feedback sequence data calibration spec signature limit label target
    metric eval margin keep-variables recipe write-recipe method bits granularity overwrite quiet dry-run json plugin verbose log-file help
    report for batch max-memory max-seconds""".split()


def options(text, command):
    """name -> (repeated, flag, placeholder, words) of a command, from the completion for zsh."""
    body = re.search(rf"^_tare_{command}\(\) \{{\n(.*?)^\}}", text, re.M | re.S).group(1)
    found = {}
    for line in body.splitlines():
        option = re.match(r"\s+('\*')?--([a-z0-9_-]+)(=?)'\[.*\](?::([^:]*):(.*))?' ?\\?$", line)
        if not option:
            continue
        repeated, name, value, placeholder, rest = option.groups()
        words = re.fullmatch(r"\((.*)\)|_sequence compadd - (.*)", rest or "")
        found[name] = (bool(repeated), not value, placeholder, ((words.group(1) or words.group(2)).split() if words else []))
    return found


def literal(words):
    return "Literal[" + ", ".join(word if word.isdigit() and set(words) <= {"4", "8", "16"} else f'"{word}"' for word in words) + "]"


def type_of(option):
    repeated, flag, placeholder, words = option
    if flag:
        return "bool"
    if repeated:
        return "Union[str, Sequence[str]]"
    if words:
        return literal(words)
    return "int" if placeholder == "N" else "Any"


def assignment(name, words):
    line = f"{name} = {literal(words)}"
    wrapped = textwrap.fill(literal(words)[8:-1], WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return line if len(line) <= WIDTH else f"{name} = Literal[\n" + textwrap.indent(wrapped, "    ") + "\n]"


def with_settings(methods, passes):
    """Methods of SETTINGS with their settings, with one pass, and with both; other quantized methods with bfloat16."""
    for method in methods:
        if method in SETTINGS:
            added = ["", "+bfloat16", *(f"+{name}" for name in passes)]
            yield from (f"{method}{setting}{name}" for setting in ["", *SETTINGS[method]] for name in added if setting or name)
        elif method not in ("float", "bfloat16"):
            yield f"{method}+bfloat16"


def main(program, *rest):
    text = subprocess.run([program, "completion", "zsh"], check=True, capture_output=True, text=True).stdout
    quantize, convert, compare = (options(text, command) for command in ("quantize", "convert", "compare"))
    lists = {"AlgorithmName": quantize["algorithm"], "PassName": quantize["passes"], "MetricName": compare["metric"], "Chip": compare["chip"]}
    source = old = PATH.read_text()
    methods = re.findall(r'"(\w+)"', re.search(r"^MethodName = Literal\[(.*?)\]", source, re.M | re.S).group(1))
    words = {name: option[3] for name, option in lists.items()}
    words["MethodText"] = list(with_settings(methods, words["PassName"]))
    for name, known in words.items():
        source = re.sub(rf"^{name} = Literal\[.*?\]( *# fmt: skip)?$", lambda match: assignment(name, known) + (match[1] or ""), source, flags=re.M | re.S)
    layers = [name for name in quantize if name in convert and name in compare and name not in OTHER]
    body = "".join(f"    {name.replace('-', '_')}: {type_of(quantize[name])}\n" for name in layers)
    source = re.sub(r'(class _Layers\(.*?\n    """.*?"""\n\n).*?(?=\n\n\nclass)', lambda match: match.group(1) + body.rstrip("\n"), source, flags=re.S)
    if "--check" in rest:
        return "python/tare/_types.py is out of date (run scripts/make-python-types.py PROGRAM)" if source != old else 0
    PATH.write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
