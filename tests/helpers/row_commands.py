"""Runs the commands that a comparison prints for its rows, and compares the outputs of the models with the measured ones.

    row_commands.py TARE REPORT FOLDER [--recommended] OPTION...

REPORT is a comparison as JSON, FOLDER (must not exist) gets the models, OPTIONs select the records as for the comparison.
All commands of all rows run; with --recommended, those of the row whose command is the next step. Exits with 1 and names
the commands whose models fail or have other outputs; prints the number of models otherwise.
"""
import json
import pathlib
import shlex
import subprocess
import sys

KINDS = ("quantize_command", "convert_command")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{shlex.join(words)}: {done.stderr.strip()}")
    return done.stdout


def selected(report, recommended):
    """The commands, each with its row. With --recommended: those of the row of the next step."""
    rows = report["results"]
    if recommended:
        rows = [row for row in rows if report.get("next") in [row.get(kind) for kind in KINDS] and report.get("next")]
    return [(row, row[kind]) for row in rows for kind in KINDS if kind in row]


def main(tare, report_path, folder, *options):
    with open(report_path) as file:
        report = json.load(file)
    recommended = "--recommended" in options
    options = [option for option in options if option != "--recommended"]
    if report.get("signature"):
        options += ["--signature", report["signature"]]
    failures = []
    commands = selected(report, recommended)
    pathlib.Path(folder).mkdir()
    for number, (row, command) in enumerate(commands):
        out = f"{folder}/{number}"
        try:
            run(*[{"tare": tare, "OUT": out}.get(word, word) for word in shlex.split(command)], "--quiet")
            found = json.loads(run(tare, "compare", report["model"], "--with", out, "--json", "--quiet", *options))
            if found["results"][1]["answers_hash"] != row["answers_hash"]:
                failures.append(f"other outputs: {command}")
        except ValueError as error:
            failures.append(str(error))
    covered = {id(row) for row, _ in commands}
    rows = [] if recommended else report["results"][1:]  # the float model of TensorFlow 1 cannot be converted
    failures += [f"no command: {row['method']}" for row in rows if id(row) not in covered]
    print("\n".join(failures) or len(commands))
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
