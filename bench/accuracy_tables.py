#!/usr/bin/env python3
"""Tables of bench/accuracy.sh: reads OUT/TASK/SET.json and writes OUT/accuracy.md and OUT/accuracy.html.

    accuracy_tables.py [--into FILE] OUT TASK...

--into replaces the lines of FILE between "<!-- tables of bench/accuracy.sh -->" and "<!-- end of the tables -->" by the tables.

The page has every model that was measured. The Markdown tables have one column per method, and the static method once with
its default algorithm and once with the algorithm that loses most. It ends with the requirements that docs/accuracy.md states,
checked on these figures; those that do not hold are printed as well.
"""
import html
import json
import math
import os
import sys

SETS = ("int8", "auto", "int4", "fp8")
DEFAULT_ALGORITHM = "min_max"
COLUMNS = (  # heading, method (a tuple: the first one that was measured)
    ("static", ("static",)),
    ("worst algorithm", ("static, worst",)),
    ("best algorithm", ("static, best",)),
    ("--auto", ("auto",)),
    ("dynamic", ("dynamic",)),
    ("weight_only", ("weight_only",)),
    ("bfloat16", ("bfloat16",)),
    ("int4", ("weight_only:bits=4:block=32",)),
    ("int4+gptq", ("weight_only:bits=4:block=32+gptq",)),
    ("W4A8", ("static:bits=4",)),
    ("W4A8+gptq", ("static:bits=4+gptq",)),
    ("fp8", ("static:format=fp8_e4m3",)),
    ("fp8_dynamic", ("dynamic:format=fp8_e4m3",)),
)
EIGHT_BITS = ("static", "auto", "dynamic", "weight_only", "bfloat16", "static:format=fp8_e4m3", "dynamic:format=fp8_e4m3")
UNITS = {"top1": " %", "iou": " %", "pixel_accuracy": " %", "sequence": " %", "sqnr": " dB", "psnr": " dB"}
TITLES = {"top1": "top-1", "auc": "AUC", "mae": "MAE", "rmse": "RMSE", "r2": "R²", "sqnr": "SQNR", "iou": "IoU",
          "pixel_accuracy": "pixel accuracy", "psnr": "PSNR", "ssim": "SSIM", "sequence": "sequences right"}
LOWER_IS_BETTER = ("mae", "rmse")


class Row:
    """One model: its figures and the measure's value, its interval, and that of the difference from float."""

    def __init__(self, result, measure, measure_name):
        self.method, self.algorithm = result["method"], result.get("algorithm")
        self.measure = measure_name
        self.value, self.low, self.high = measure["value"], measure.get("low"), measure.get("high")
        self.least, self.most = measure.get("difference_low"), measure.get("difference_high")
        self.sqnr = result["sqnr_db"]  # None: exact
        self.size = result["size_bytes"]
        self.warnings = result.get("warnings", [])

    @property
    def name(self):
        return self.method if self.algorithm is None or self.method == "auto" else f"{self.method} {self.algorithm}"

    def loss(self, other):
        """How much worse than the other model, in the unit of the measure."""
        return (self.value - other.value) * (1 if self.measure in LOWER_IS_BETTER else -1)

    def differs(self):
        return self.least is not None and (self.least > 0 or self.most < 0)


def read_task(out, task):
    """The models of all sets of a task; the first one is the float model."""
    rows, records = [], 0
    for name in SETS:
        path = os.path.join(out, task, name + ".json")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        records = report["records"]
        measure = report["measure"]
        for result, figures in zip(report["results"], measure["results"]):
            row = Row(result, figures, measure["name"])
            if all(row.name != other.name for other in rows):
                rows.append(row)
    return rows, records


def static_rows(rows):
    return [row for row in rows if row.method == "static"]


def find(rows, method):
    """The row of a column; None where it was not measured."""
    static = static_rows(rows)
    if method == "static, worst":
        return max(static, key=lambda row: (row.loss(rows[0]), -math.inf if row.sqnr is None else -row.sqnr), default=None)
    if method == "static, best":
        return min(static, key=lambda row: (row.loss(rows[0]), -math.inf if row.sqnr is None else -row.sqnr), default=None)
    for row in rows:
        if row.method == method and row.algorithm in (None, DEFAULT_ALGORITHM) or method == "auto" == row.method:
            return row
    return None


def number(value, measure, sign=False):
    if value is None:
        return "–"
    digits = 2 if measure in UNITS else 4
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace("-", "−")


def decibels(row):
    return "exact" if row.sqnr is None else f"{row.sqnr:.1f}"


def difference(row, reference):
    star = " *" if row.differs() else ""
    note = ""
    return number(row.value - reference.value, row.measure, sign=True) + star + note


def markdown_table(heading, lines):
    out = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return out + ["| " + " | ".join(line) + " |" for line in lines]


def used_columns(tasks):
    return [(heading, names) for heading, names in COLUMNS
            if any(find(rows, name) for rows, _ in tasks.values() for name in names)]


def cells(rows, columns, show):
    found = [next((row for row in (find(rows, name) for name in names) if row), None) for _, names in columns]
    return ["–" if row is None else show(row) for row in found]


def markdown(tasks):
    columns = used_columns(tasks)
    headings = [heading for heading, _ in columns]
    accuracy, sqnr, sizes = [], [], []
    for task, (rows, records) in tasks.items():
        reference = rows[0]
        interval = "" if reference.low is None else \
            f" [{number(reference.low, reference.measure)} … {number(reference.high, reference.measure)}]"
        accuracy.append([task, str(records), TITLES.get(reference.measure, reference.measure),
                         number(reference.value, reference.measure) + UNITS.get(reference.measure, "") + interval]
                        + cells(rows, columns, lambda row: difference(row, reference)))
        sqnr.append([task] + cells(rows, columns, decibels))
        sizes.append([task, f"{reference.size / 1000:.0f}"] + cells(rows, columns, lambda row: f"{row.size / 1000:.0f}"))
    lines = ["Difference from float; `*`: its 95 % interval does not contain 0.", ""]
    lines += markdown_table(["task", "records", "measure", "float"] + headings, accuracy)
    lines += ["", "SQNR of the measured output against float, in dB.", ""]
    lines += markdown_table(["task"] + headings, sqnr)
    lines += ["", "Constants and variables, in kB.", ""]
    lines += markdown_table(["task", "float"] + headings, sizes)
    return lines


# ---- requirements ----


def too_low(row, reference):
    """Significantly below float, or more than 1 % worse in an error."""
    loss = row.loss(reference)
    if row.measure in LOWER_IS_BETTER and reference.value > 0:
        return loss > 0.01 * reference.value
    return loss > 0 and row.differs()


def points(row, reference):
    """Loss in points of 100; for errors, in percent of the float model's."""
    loss = row.loss(reference)
    if row.measure in LOWER_IS_BETTER:
        return 100 * loss / reference.value if reference.value > 0 else 0
    return loss if row.measure in UNITS else 100 * loss


def requirements(tasks):
    """Lines of those that do not hold, and the number that were checked."""
    failures, checked = [], 0
    for task, (rows, _) in tasks.items():
        reference = rows[0]
        for method in EIGHT_BITS:
            row = find(rows, method)
            checked += row is not None
            if row is not None and too_low(row, reference):
                failures.append(f"{task}: {row.name} is below float by {number(row.loss(reference), row.measure)}"
                                f"{UNITS.get(row.measure, '')}")
        for row in static_rows(rows):
            checked += 1
            if points(row, reference) > 1 and not row.warnings:
                failures.append(f"{task}: {row.name} loses {points(row, reference):.2f} points without a warning")
        automatic, plain = find(rows, "auto"), find(rows, "static")
        if automatic and plain:
            checked += 1
            if automatic.sqnr is not None and (plain.sqnr is None or automatic.sqnr < plain.sqnr):
                failures.append(f"{task}: --auto has {decibels(automatic)} dB, plain static {decibels(plain)} dB")
        four = find(rows, "weight_only:bits=4:block=32+gptq")
        if four:
            checked += 1
            least = points(four, reference)
            if least > (5 if reference.measure in LOWER_IS_BETTER else 1):
                failures.append(f"{task}: 4 bits lose {least:.2f} points")
    return failures, checked


# ---- the page ----

STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}
th:first-child,td:first-child{text-align:left}tr.below td{background:#fde8e8}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}tr.below td{background:#522}}"""


def page_row(row, reference):
    interval = "" if row.low is None else f"{number(row.low, row.measure)} … {number(row.high, row.measure)}"
    change = "" if row is reference else difference(row, reference)
    paired = "" if row.least is None else f"{row.least:+.3g} … {row.most:+.3g}"
    below = row is not reference and too_low(row, reference)
    figures = [row.name, number(row.value, row.measure), interval, change, paired,
               "" if row is reference else decibels(row), f"{row.size / 1000:.0f}"]
    marks = "".join(f"<td>{html.escape(text)}</td>" for text in figures)
    warned = "<br>".join(html.escape(text) for text in row.warnings)
    return f"<tr{' class=below' if below else ''}>{marks}<td style='text-align:left'>{warned}</td></tr>"


def page(tasks, failures, checked):
    out = ["<!doctype html><html lang=en><meta charset=utf-8><title>Accuracy of the quantization methods</title>",
           f"<style>{STYLE}</style><h1>Accuracy of the quantization methods</h1>",
           f"<p>{len(tasks)} tasks. {checked - len(failures)} of {checked} requirements hold.</p>"]
    if failures:
        out.append("<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in failures) + "</ul>")
    for task, (rows, records) in tasks.items():
        measure = rows[0].measure
        heads = ("model", TITLES.get(measure, measure) + UNITS.get(measure, ""), "95 % interval", "from float", "95 % interval",
                 "SQNR dB", "kB", "warnings")
        out.append(f"<h2>{html.escape(task)}, {records} records</h2><table><tr>"
                   + "".join(f"<th>{html.escape(text)}</th>" for text in heads) + "</tr>")
        out += [page_row(row, rows[0]) for row in rows]
        out.append("</table>")
    return "\n".join(out) + "\n</html>\n"


def put_into(path, lines):
    """Replaces the tables of a page."""
    begin, end = "<!-- tables of bench/accuracy.sh -->", "<!-- end of the tables -->"
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(begin)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([before + begin, ""] + lines + ["", end + rest.split(end)[1]]))


def main():
    arguments = sys.argv[1:]
    into = arguments[1] if arguments[:1] == ["--into"] else None
    arguments = arguments[2:] if into else arguments
    if len(arguments) < 2:
        sys.exit("usage: accuracy_tables.py [--into FILE] OUT TASK...")
    out = arguments[0]
    tasks = {task: read_task(out, task) for task in arguments[1:]}
    tasks = {task: found for task, found in tasks.items() if found[0]}
    failures, checked = requirements(tasks)
    lines = markdown(tasks) + ["", f"{checked - len(failures)} of {checked} requirements hold."]
    lines += [f"- {text}" for text in failures]
    with open(os.path.join(out, "accuracy.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    with open(os.path.join(out, "accuracy.html"), "w", encoding="utf-8") as file:
        file.write(page(tasks, failures, checked))
    if into:
        put_into(into, lines)
    print("\n".join(lines[-1 - len(failures):]))
    print(f"written: {os.path.join(out, 'accuracy.md')}, accuracy.html")


if __name__ == "__main__":
    main()
