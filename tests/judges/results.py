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


@dataclass
class Results:
    """Collects findings; `known` maps a place to the reason of a failure that is known."""

    known: dict[str, str]
    findings: list[Finding] = field(default_factory=list)

    def add(self, model: str, step: str, check: str, status: str, text: str = "") -> None:
        text = " ".join(text.split())[:400]
        finding = Finding(model, step, check, status, text)
        reason = self.known.get(finding.place)
        if reason and status == FAILED:
            finding = Finding(model, step, check, SKIPPED, f"known: {reason}")
        elif reason and status == PASSED:
            finding = Finding(model, step, check, FAILED, f"passes: remove it from known.py ({reason})")
        self.findings.append(finding)
        if finding.status == FAILED:
            print(f"FAILED {finding.place}: {finding.text}", flush=True)

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

    def save(self, path: Path) -> None:
        path.write_text(json.dumps([asdict(one) for one in self.findings], indent=1), encoding="utf-8")

    @property
    def failed(self) -> bool:
        return any(one.status == FAILED for one in self.findings)
