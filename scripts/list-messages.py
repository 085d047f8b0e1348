#!/usr/bin/env python3
"""list-messages.py [--page PAGE.md] FOLDER|FILE…: the texts of errors and warnings in C files, one a line: "FILE:LINE<tab>TEXT",
with … for what is filled in. A text is the format of TARE_FAIL, or of what goes to standard error as "tare: …".

With --page: what PAGE does not explain. Its tables begin with messages in backquotes, "…" for what differs; one explains every
text that it is a part of. Prints the texts without an entry and the entries without a text, and fails when there are any."""
import re
import sys
from pathlib import Path

CALL = re.compile(r'\b(?:TARE_FAIL\s*\([^,"]*,|tare_text_fail\s*\([^"]*,|tare_lower_fail\s*\([^";]*,|INVALID\s*\(|tare_warn\s*\([^"]*,|tare_quant_add_warning\s*\([^"]*,|fprintf\s*\(\s*stderr\s*,)(?:[^",;]*\?)?\s*(?=["P])')
PIECE = re.compile(r'\s*("(?:[^"\\]|\\.)*"|PRI[a-zA-Z0-9]+|TARE_[A-Z_]+)')
FIELD = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+)?)?(?:hh|h|ll|l|z|j|t|L)?[a-zA-Z]|%%")
LEAST = 5  # letters of a text that says anything itself; the rest puts a place before another text


def literals(source, at):
    """The texts of string literals from `at` on: one, or two with a colon between them."""
    text = ""
    while piece := PIECE.match(source, at):
        word = piece[1]
        text += word[1:-1] if word.startswith('"') else "d" if word.startswith("PRI") else "%s"
        at = piece.end()
    yield text
    if other := re.compile(r'\s*:\s*(?=")').match(source, at):
        yield from literals(source, other.end())


def plain(text):
    text = FIELD.sub(lambda field: "%" if field[0] == "%%" else "…", text)
    return text.replace('\\"', '"').replace("\\n", "").replace("\\\\", "\\")


def messages(places):
    """{text: where it stands first}"""
    found = {}
    for path in sorted(path for place in places for path in (Path(place).rglob("*.c") if Path(place).is_dir() else [Path(place)])):
        source = path.read_text(encoding="utf-8")
        for call in CALL.finditer(source):
            line = source.count("\n", 0, call.start()) + 1
            for text in map(plain, literals(source, call.end())):
                is_error = not call[0].startswith("fprintf") or text.startswith("tare: ")
                if is_error and len(re.findall("[A-Za-z]", text)) >= LEAST:
                    found.setdefault(text, f"{path}:{line}")
    return found


def entries(page):
    for row in re.findall(r"^\| (`[^|]*) \|[^|]+\|[^|]+\|$", page, re.M):
        yield from re.findall("`([^`]+)`", row)


def pattern(entry):
    """A part of a text; of few letters it would be a part of too many, and is the whole."""
    if len(re.findall("[A-Za-z]", entry)) < LEAST:
        return re.compile(f"^{re.escape(entry)}$")
    return re.compile(".*".join(re.escape(part) for part in entry.split("…")))


def check(page, found):
    wrong = 0
    rows = {entry: pattern(entry) for entry in entries(Path(page).read_text(encoding="utf-8"))}
    for text, where in found.items():
        if not any(row.search(text) for row in rows.values()):
            wrong += 1
            print(f"{where}: no entry explains: {text}")
    for entry, row in rows.items():
        if not any(row.search(text) for text in found):
            wrong += 1
            print(f"{page}: no error says: {entry}")
    print(f"{len(found)} texts, {len(rows)} entries, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--page"]:
        sys.exit(1 if check(sys.argv[2], messages(sys.argv[3:])) else 0)
    for text, where in messages(sys.argv[1:]).items():
        print(f"{where}\t{text}")
