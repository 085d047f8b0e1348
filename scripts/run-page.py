#!/usr/bin/env python3
"""run-page.py PAGE.md [--skip TEXT]…: does what a page says, by copy and paste, in the current folder. Exit status 1 when something fails.

  ```c         a listing whose first line is a comment with its file's name: written to that file
  ```console   lines that begin with "$ " are commands; the lines below are what they print, on both streams
  ```python    run, where it needs no TensorFlow; else compiled only
  ```          commands, when the first word of every line is a program that is here; else text and left alone

A command that holds a TEXT of --skip is left out."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

page, skip = Path(sys.argv[1]), sys.argv[3::2]
done = dict.fromkeys(("listings", "commands", "python", "compiled", "skipped"), 0)
wrong = 0


def fail(line, text):
    global wrong
    wrong += 1
    print(f"{page}:{line}: {text}", file=sys.stderr)


def shell(line, command, expected=None):
    if any(text in command for text in skip):
        done["skipped"] += 1
        return
    done["commands"] += 1
    result = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if expected is None and result.returncode != 0:
        fail(line, f"{command}\n  exit status {result.returncode}: {result.stdout}")
    if expected is not None and result.stdout.rstrip("\n") != expected.rstrip("\n"):
        fail(line, f"{command}\n  printed: {result.stdout}  expected:  {expected}")


def console(line, lines):
    command, expected, at = None, "", line
    for number, text in enumerate(lines + ["$ "], line):
        if text.startswith("$ "):
            if command:
                shell(at, command, expected)
            command, expected, at = text[2:], "", number
        elif command is not None and command.endswith("\\"):
            command += "\n" + text
        else:
            expected += text + "\n"


def plain(line, lines):
    commands, text = [], "\n".join(lines)
    for part in re.split(r"(?<!\\)\n(?! )", text):
        if part.strip() and not part.startswith("#"):
            commands.append(part)
    if not commands or not all(shutil.which(command.split()[0]) for command in commands):
        return
    for command in commands:
        shell(line, command)


def python(line, text):
    try:
        compile(text, str(page), "exec")
    except SyntaxError as error:
        fail(line + (error.lineno or 0), f"python: {error}")
    if re.search(r"\btf\.|tensorflow|^\s*yield|^\s*\.\.\.", text, re.M):
        done["compiled"] += 1
        return
    done["python"] += 1
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(text)
        file.flush()
        shell(line, f"{sys.executable} {file.name}")
    done["commands"] -= 1


block, first, kind = [], 0, None
for number, text in enumerate(page.read_text().splitlines(), 1):
    if kind is None:
        if text.startswith("```"):
            kind, block, first = text[3:].strip() or "plain", [], number + 1
        continue
    if text != "```":
        block.append(text)
        continue
    if kind == "c" and re.match(r"/\* (\S+\.[ch]) \*/", block[0]):
        Path(re.match(r"/\* (\S+)", block[0])[1]).write_text("\n".join(block) + "\n")
        done["listings"] += 1
    elif kind == "console":
        console(first, block)
    elif kind == "python":
        python(first, "\n".join(block) + "\n")
    elif kind == "plain":
        plain(first, block)
    kind = None
print(f"{page}: " + ", ".join(f"{count} {what}" for what, count in done.items() if count) + f", {wrong} wrong")
sys.exit(1 if wrong or not sum(done.values()) else 0)
