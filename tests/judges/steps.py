"""The steps that every model goes through: one row per command line of `tare` that writes a model."""
from __future__ import annotations

from dataclasses import dataclass

BATCHES = "batch_options { num_batch_threads: 1 max_batch_size: 4 batch_timeout_micros: 100 allowed_batch_sizes: [2, 4] }"


@dataclass(frozen=True)
class Bound:
    """How far outputs may differ: `largest` and `mean` as parts of the output's largest magnitude."""

    largest: float
    mean: float


# Sums are accumulated in another order: TensorFlow's kernels, XLA's and ours agree to some rounding errors of float32.
FLOAT32 = Bound(1e-4, 1e-5)
# An activation that is next to the limit between two integers goes to the other one after such a rounding error, and with it
# moves by a whole step of its scale: 1/255 of the range with 8 bits. Few do.
# Many layers amplify that as they amplify all rounding: differences up to a third of what the step changed are none.
STEPS = Bound(4e-2, 4e-3)
# The same with bfloat16, which has a step of 1/256 of the value after every op.
BFLOAT16 = Bound(6e-2, 1e-2)
# And with float8 of three bits of mantissa: a step of 1/8, by which one activation moves all outputs of its row.
FLOAT8 = Bound(12.5e-2, 4e-2)


@dataclass(frozen=True)
class Step:
    """A row: `tare COMMAND MODEL OUT ARGUMENTS…`, where CALIBRATION stands for the file of the model's calibration."""

    name: str
    command: str
    arguments: tuple[str, ...]
    bound: Bound
    quick: bool = True
    judged: str = "run"     # how TensorFlow runs the result: "run" as it is, "xla" compiled, "tpu" with its TPU calls compiled
    trained: bool = False   # its gradients are those of the original model
    aliased: bool = False   # only for models that were saved with the alias tpu_func


def quantize(name: str, *arguments: str, bound: Bound = STEPS, quick: bool = True, judged: str = "run", trained: bool = False) -> Step:
    minimum = () if trained else ("--min-elements", "1")
    return Step(f"quantize/{name}", "quantize", (*arguments, *minimum), bound, quick, judged, trained)


def convert(name: str, *arguments: str, bound: Bound = BFLOAT16, quick: bool = True, aliased: bool = False) -> Step:
    return Step(f"convert/{name}", "convert", arguments, bound, quick, "tpu", aliased=aliased)


def options(text: str) -> str:
    return f"--converter_options_string={text}"


AUTO = ("--tpu_functions", "auto")
ALIAS = 'tpu_functions { function_alias: "tpu_func" }'
STATIC = ("--calibration", "CALIBRATION")
STEPS_OF_A_MODEL = (
    quantize("static", *STATIC, judged="xla"),
    quantize("static-variables", *STATIC, "--keep-variables", judged="xla", quick=False),
    quantize("static-int16", *STATIC, "--activation-bits", "16", judged="xla", quick=False),
    quantize("static-tf", *STATIC, "--op-set", "tf"),
    quantize("static-uniform", *STATIC, "--op-set", "uniform_quantized", judged="xla"),
    quantize("dynamic", "--method", "dynamic", judged="xla"),
    quantize("dynamic-tf", "--method", "dynamic", "--op-set", "tf", quick=False),
    quantize("dynamic-uniform", "--method", "dynamic", "--op-set", "uniform_quantized", quick=False),
    quantize("weight-only", "--method", "weight_only", bound=FLOAT32, judged="xla"),
    quantize("weight-only-variables", "--method", "weight_only", "--keep-variables", bound=FLOAT32, judged="xla"),
    quantize("float-variables", "--method", "float", "--keep-variables", bound=FLOAT32, trained=True),
    quantize("weight-only-4", "--method", "weight_only", "--bits", "4", bound=FLOAT32, judged="xla", quick=False),
    convert("default"),
    convert("alias", options(ALIAS), aliased=True),
    convert("alias-batching", options(f"{ALIAS} {BATCHES}"), aliased=True, quick=False),
    convert("batching", *AUTO, options(BATCHES)),
    convert("scope-all", *AUTO, options("bfloat16_optimization_options { scope: ALL }"), quick=False),
    convert("float32", *AUTO, options("bfloat16_optimization: DISABLED"), bound=FLOAT32),
    convert("int8", "--calibration", "CALIBRATION"),
)
