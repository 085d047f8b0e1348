#!/usr/bin/env python3
"""Writes examples/tutorial.ipynb from python/examples/tutorial.py, a script in the percent form (a test compares the two):
scripts/make-notebook.py > examples/tutorial.ipynb"""
import json
import pathlib

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "python/examples/tutorial.py"


def cells(text):
    for part in text.split("# %%")[1:]:
        kind, _, body = part.partition("\n")
        lines = body.strip("\n").split("\n")
        if "[markdown]" in kind:
            lines = [line[2:] for line in lines if line.startswith("#")]
        yield ("markdown" if "[markdown]" in kind else "code"), "\n".join(lines).strip("\n")


def notebook(text):
    made = []
    for number, (kind, source) in enumerate(cells(text)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": source.splitlines(keepends=True)}
        made.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": made, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    print(json.dumps(notebook(SCRIPT.read_text(encoding="utf-8")), indent=1))
