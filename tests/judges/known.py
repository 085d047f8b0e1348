"""Failures that are known: "MODEL STEP CHECK" and the reason. One that passes is a failure of this table."""
from __future__ import annotations


def places(model: str, reason: str, steps: str, check: str) -> dict[str, str]:
    """The same check of several steps of a model."""
    return {f"{model} {step} {check}": reason for step in steps.split()}


KNOWN: dict[str, str] = {}
