"""Failures that are known: "MODEL STEP CHECK" and the reason. One that passes is a failure of this table."""

KNOWN: dict[str, str] = {}
