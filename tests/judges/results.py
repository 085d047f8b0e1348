"""What the judges found: one row per model, step and check; lines for people and a JSON file for programs."""
from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

PASSED, FAILED, SKIPPED, REFUSED = "passed", "failed", "skipped", "refused"


@dataclass(frozen=True)
class Finding:
    """`check` says what was tried: tare, validate, load, load-v1, cli, functions, values, compile."""

    model: str
    step: str
    check: str
    status: str
    text: str = ""

    @property
    def place(self) -> str:
        return f"{self.model} {self.step} {self.check}"


class Journal:
    """A file of findings and marks, one JSON object a line, which another process reads."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def line(self, value: dict) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(value) + "\n")

    def add(self, model: str, step: str, check: str, status: str, text: str = "") -> None:
        self.line(asdict(Finding(model, step, check, status, " ".join(text.split())[:400])))

    def mark(self, name: str, value: object) -> None:
        self.line({"mark": name, "value": value})


@dataclass
class Results:
    """Collects findings in a file; `known` maps a place to the reason of a failure that is known."""

    known: dict[str, str]
    path: Path
    findings: list[Finding] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        reason = self.known.get(finding.place)
        if reason and finding.status == FAILED:
            finding = Finding(finding.model, finding.step, finding.check, SKIPPED, f"known: {reason}")
        elif reason and finding.status == PASSED:
            finding = Finding(finding.model, finding.step, finding.check, FAILED, f"passes: remove it from known.py ({reason})")
        self.findings.append(finding)
        if finding.status == FAILED:
            print(f"FAILED {finding.place}: {finding.text}", flush=True)

    def read(self, path: Path) -> dict[str, list]:
        """Adds the findings of a journal and returns its marks: {name: values}."""
        marks: dict[str, list] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            value = json.loads(line)
            if "mark" in value:
                marks.setdefault(value["mark"], []).append(value["value"])
            else:
                self.add(Finding(**value))
        for name, seconds in marks.get("finished", []):
            self.finished(name, seconds)
        return marks

    def table(self) -> str:
        """Statuses by step, then what was refused or skipped and why, then the sum."""
        steps: dict[str, Counter[str]] = {}
        for one in self.findings:
            steps.setdefault(one.step, Counter())[one.status] += 1
        lines = [f"{'step':32}{'passed':>8}{'failed':>8}{'skipped':>8}{'refused':>8}"]
        lines += [f"{step:32}" + "".join(f"{count[status]:8}" for status in (PASSED, FAILED, SKIPPED, REFUSED)) for step, count in steps.items()]
        reasons = Counter((one.status, one.text) for one in self.findings if one.status in (SKIPPED, REFUSED))
        lines += [f"{status} {count} ×: {text}" for (status, text), count in sorted(reasons.items())]
        total = Counter(one.status for one in self.findings)
        lines.append(f"{total[PASSED]} passed, {total[FAILED]} failed, {total[SKIPPED] + total[REFUSED]} skipped")
        return "\n".join(lines)

    def finished(self, name: str, seconds: float = 0.0) -> None:
        self.seconds[name] = seconds

    def save(self) -> None:
        found = {"seconds": self.seconds, "findings": [asdict(one) for one in self.findings]}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1), encoding="utf-8")
        part.rename(self.path)

    def load(self) -> None:
        """Goes on with what an earlier run found. Models that it did not finish are judged again."""
        found = json.loads(self.path.read_text(encoding="utf-8"))
        self.seconds = found["seconds"]
        findings = [Finding(**one) for one in found["findings"]]
        self.findings = [one for one in findings if one.model in self.seconds or one.model.split("/")[0] in ("quantizer", "batches")]

    @property
    def failed(self) -> bool:
        return any(one.status == FAILED for one in self.findings)
