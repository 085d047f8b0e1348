"""tare: calibrate, quantize and convert TensorFlow SavedModels for Cloud TPU, without TensorFlow.

    import tare

    model = tare.load("my_model")
    calibration = tare.calibrate(model, images)
    result = tare.compare(model, (images, labels), calibration=calibration)
    model.quantize("static", calibration).convert().save("my_tpu_model")

docs/python.md has a tutorial and the reference of all names.
"""

from . import tpu
from ._arrays import TensorSpec, bfloat16_to_float32, float32_to_bfloat16
from ._batch import BatchResult, batch
from ._calibrate import calibrate
from ._calibration import Calibration, Histogram, Ranges
from ._comparison import Comparison, Metric, compare
from ._data import read_records, write_records
from ._errors import (
    CorruptDataError,
    DTypeError,
    Error,
    FileError,
    InternalError,
    Interrupted,
    InvalidArgumentError,
    NotFoundError,
    OutOfMemoryError,
    ShapeError,
    Status,
    TareWarning,
    UnsupportedError,
    UsageError,
)
from ._files import Difference, diff, validate
from ._model import Function, Model, Signature, load
from ._native import version as _version
from ._table import Table
from ._types import Setting, setting

__version__: str = _version()

__all__ = [
    "BatchResult",
    "Calibration",
    "Comparison",
    "CorruptDataError",
    "DTypeError",
    "Difference",
    "Error",
    "FileError",
    "Function",
    "Histogram",
    "InternalError",
    "Interrupted",
    "InvalidArgumentError",
    "Metric",
    "Model",
    "NotFoundError",
    "OutOfMemoryError",
    "Ranges",
    "Setting",
    "ShapeError",
    "Signature",
    "Status",
    "Table",
    "TareWarning",
    "TensorSpec",
    "UnsupportedError",
    "UsageError",
    "batch",
    "bfloat16_to_float32",
    "calibrate",
    "compare",
    "diff",
    "float32_to_bfloat16",
    "load",
    "read_records",
    "setting",
    "tpu",
    "validate",
    "write_records",
]
