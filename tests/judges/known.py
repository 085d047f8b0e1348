"""Failures that are known: "MODEL STEP CHECK" and the reason. One that passes is a failure of this table."""
from __future__ import annotations


def places(model: str, reason: str, steps: str, check: str) -> dict[str, str]:
    """The same check of several steps of a model."""
    return {f"{model} {step} {check}": reason for step in steps.split()}


SCALAR = "the automatic split passes a scalar to the TPU function"
SHAPE = "XLA rejects a Reshape whose shape is computed as int64"

KNOWN: dict[str, str] = {
    **places("embedding_of_looked_up_strings", SCALAR, "convert/batching", "tare"),
    **places("compiled_function", "XLA has no kernel of UniformQuantizedDotHybrid", "quantize/dynamic-uniform", "values"),
    **places("segments_and_unique", "requests with other numbers of segments are joined", "convert/batching", "values"),
    **places("flax_lstm", SHAPE, "quantize/static quantize/static-int16 quantize/static-uniform quantize/dynamic quantize/weight-only"
             " quantize/weight-only-4 convert/default convert/batching convert/scope-all convert/float32 convert/int8", "values"),
}
