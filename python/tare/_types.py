"""Types of options, for type checkers and editors: names are literals, further options TypedDicts. Names and the options of layers are
written by scripts/make-python-types.py; a test compares all with the options of the library."""

from typing import Any, Literal, Sequence, TypedDict, Union

__all__ = ["Setting", "setting"]

MethodName = Literal[
    "static", "dynamic", "weight_only", "float", "bfloat16", "int8", "w8a8", "w8a16", "w4a8", "int8_dynamic", "int8_weight_only", "int4",
    "fp8", "fp8_dynamic", "fp8_weight_only"
]  # fmt: skip
MethodText = Literal[
    "static+bfloat16", "static+equalization", "static+smooth_quant", "static+weight_clipping", "static+gptq", "static+bias_correction",
    "static:bits=4", "static:bits=4+bfloat16", "static:bits=4+equalization", "static:bits=4+smooth_quant", "static:bits=4+weight_clipping",
    "static:bits=4+gptq", "static:bits=4+bias_correction", "static:activation_bits=16", "static:activation_bits=16+bfloat16",
    "static:activation_bits=16+equalization", "static:activation_bits=16+smooth_quant", "static:activation_bits=16+weight_clipping",
    "static:activation_bits=16+gptq", "static:activation_bits=16+bias_correction", "dynamic+bfloat16", "dynamic+equalization",
    "dynamic+smooth_quant", "dynamic+weight_clipping", "dynamic+gptq", "dynamic+bias_correction", "dynamic:bits=4",
    "dynamic:bits=4+bfloat16", "dynamic:bits=4+equalization", "dynamic:bits=4+smooth_quant", "dynamic:bits=4+weight_clipping",
    "dynamic:bits=4+gptq", "dynamic:bits=4+bias_correction", "weight_only+bfloat16", "weight_only+equalization", "weight_only+smooth_quant",
    "weight_only+weight_clipping", "weight_only+gptq", "weight_only+bias_correction", "weight_only:bits=4", "weight_only:bits=4+bfloat16",
    "weight_only:bits=4+equalization", "weight_only:bits=4+smooth_quant", "weight_only:bits=4+weight_clipping", "weight_only:bits=4+gptq",
    "weight_only:bits=4+bias_correction", "weight_only:bits=4:block=32", "weight_only:bits=4:block=32+bfloat16",
    "weight_only:bits=4:block=32+equalization", "weight_only:bits=4:block=32+smooth_quant", "weight_only:bits=4:block=32+weight_clipping",
    "weight_only:bits=4:block=32+gptq", "weight_only:bits=4:block=32+bias_correction", "int8+bfloat16", "w8a8+bfloat16", "w8a16+bfloat16",
    "w4a8+bfloat16", "int8_dynamic+bfloat16", "int8_weight_only+bfloat16", "int4+bfloat16", "fp8+bfloat16", "fp8_dynamic+bfloat16",
    "fp8_weight_only+bfloat16"
]  # fmt: skip
AlgorithmName = Literal["min_max", "average_min_max", "percentile", "entropy", "mse", "mse_symmetric"]
PassName = Literal["equalization", "smooth_quant", "weight_clipping", "gptq", "bias_correction"]
AlgorithmText = Literal["percentile:p=99", "percentile:p=99.9", "percentile:p=99.99", "percentile:p=99.999"]
Granularity = Literal["per_tensor", "per_channel", "per_block:32", "per_block:64", "per_block:128", "per_block:256"]
MetricName = Literal["auto", "top1", "auc", "mae", "rmse", "r2", "iou", "pixel_accuracy", "sequence", "psnr", "ssim", "sqnr"]
Chip = Literal["v2", "v3", "v4", "v5e", "v5p", "v6e", "tpu7x", "8i", "8t"]


class Setting(str):
    """A method, algorithm or pass with parameters: a str that type checkers accept where they expect a name. `setting` makes one of
    its parts, and finds mistakes in the name; ``tare.Setting(text)`` one of any text.

    Examples
    --------
    >>> tare.setting("weight_only", bits=4) == tare.Setting("weight_only:bits=4")
    True
    """


def setting(name: Union[MethodName, AlgorithmName, PassName], *passes: Union[PassName, Literal["bfloat16"]], **parameters: Any) -> Setting:
    """A method, algorithm or pass with parameters, as a str that type checkers accept where they expect a name.

    Parameters
    ----------
    name : str
        ``"weight_only"``, ``"percentile"``, ``"smooth_quant"`` …
    *passes : str
        Accuracy passes of a method, or ``"bfloat16"`` to compute the remaining float ops in bfloat16.
    **parameters
        Its parameters: ``bits=4``, ``block=32``, ``p=99.9``.

    Returns
    -------
    Setting

    Examples
    --------
    >>> tare.setting("weight_only", "gptq", bits=4, block=32)
    'weight_only:bits=4:block=32+gptq'
    """
    return Setting(":".join([name, *(f"{key}={value}" for key, value in parameters.items())]) + "".join(f"+{item}" for item in passes))


Method = Union[MethodName, MethodText, Setting]
Algorithm = Union[AlgorithmName, AlgorithmText, Setting]
Pass = Union[PassName, Setting]


class _Layers(TypedDict, total=False):
    """How layers are quantized."""

    format: Literal["int8", "int4", "fp8_e4m3", "fp8_e5m2"]
    full_range: bool
    symmetric: bool
    activation_bits: Literal[8, 16]
    op_set: Literal["xla", "uniform_quantized", "tf"]
    depthwise: bool
    two_inputs: bool
    integer_adds: bool
    shared_ranges: bool
    min_elements: int
    rule: Union[str, Sequence[str]]


class _Target(TypedDict, total=False):
    """What a search over the precision of layers must reach."""

    auto: bool
    max_drop: float
    min_sqnr: float
    max_mae: float
    max_size: Union[int, str]


class _Feedback(TypedDict, total=False):
    """State between records."""

    feedback: Union[str, Sequence[str]]
    sequence: str


class QuantizeOptions(_Layers, _Target, _Feedback, total=False):
    """Further options of `Model.quantize`."""

    keep_variables: bool
    write_recipe: Any
    allow_unquantized: bool
    for_: Union[Literal["any"], Chip]
    batch: int
    data: Any
    eval: Any
    spec: Any
    signature: str
    limit: int
    label: str
    target: str
    metric: MetricName
    margin: float


class CompareOptions(_Layers, _Target, _Feedback, total=False):
    """Further options of `compare`."""

    granularities: Union[Granularity, Sequence[Granularity]]
    bits: Literal[4, 8]
    recipe: Any
    margin: float
    rest: bool
    batch: int
    sensitivity_limit: int
    chip: Chip
    chip_batch: int
    compile: bool


class CalibrateOptions(_Feedback, total=False):
    """Further options of `calibrate`."""

    observe: Literal["quantizable", "all"]
    channels: bool
    max_bad: int
    function: str
    sample: int
    seed: int


class DescribeOptions(TypedDict, total=False):
    """Options of `Calibration.describe`."""

    algorithms: Union[Algorithm, Sequence[Algorithm]]
    tensor: str
