#!/usr/bin/env python3
"""quantize.py MODEL INPUT SAMPLES.npy OUT: calibrates a SavedModel with the rows of an array, quantizes it, and runs both.
NumPy in, NumPy out, as in a notebook; needs libtare."""
import ctypes
import sys

import numpy as np

lib = ctypes.CDLL("libtare.so.0.1")
lib.tare_error_text.restype = ctypes.c_char_p
DTYPES = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 9: np.int64, 10: np.bool_}
NUMBERS = {np.dtype(dtype): number for number, dtype in DTYPES.items()}


class Array(ctypes.Structure):  # tare_array of tare/array.h
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("dims", ctypes.c_int64 * 12), ("data", ctypes.c_void_p), ("reserved", ctypes.c_uint64 * 4)]

    def numpy(self):  # a copy: the next call of the library reuses the memory
        values = ctypes.cast(self.data, ctypes.POINTER(np.ctypeslib.as_ctypes_type(DTYPES[self.dtype])))
        return np.ctypeslib.as_array(values, tuple(self.dims[:self.rank])).copy()


def array(name, values):  # `values`: C-contiguous; must outlive the result
    return Array(name.encode(), NUMBERS[values.dtype], values.ndim, tuple(values.shape), values.ctypes.data)


def call(function, *args):
    if getattr(lib, function)(*args) != 0:
        raise RuntimeError(lib.tare_error_text().decode())


def make(function, *args):  # the first argument of the function receives a handle
    handle = ctypes.c_void_p()
    call(function, ctypes.byref(handle), *args)
    return handle


def run(model, name, values):  # {output: array}
    outputs, count, runner = ctypes.POINTER(Array)(), ctypes.c_size_t(), make("tare_runner_open", model, None)
    call("tare_runner_run", runner, ctypes.byref(array(name, values)), ctypes.c_size_t(1), ctypes.byref(outputs),
         ctypes.byref(count))
    outputs_by_name = {outputs[i].name.decode(): outputs[i].numpy() for i in range(count.value)}
    lib.tare_runner_close(runner)
    return outputs_by_name


path, name, samples, out = sys.argv[1:]
rows = np.ascontiguousarray(np.load(samples))
model = make("tare_model_open", None, path.encode())
calibrator = make("tare_calibrator_open", model, b"")
for i in range(len(rows)):
    call("tare_calibrator_push", calibrator, ctypes.byref(array(name, rows[i:i + 1])), ctypes.c_size_t(1))
calibration = make("tare_calibrator_finish", calibrator)
quantized = make("tare_model_quantize", model, b"static", calibration, b"algorithm=mse")
call("tare_model_write", quantized, out.encode(), 1)
for (output, before), after in zip(run(model, name, rows).items(), run(quantized, name, rows).values()):
    print(f"{output}: {before.shape}, {(before.argmax(-1) == after.argmax(-1)).mean():.1%} of the rows have the same argmax in int8")
for kind, handle in ("calibrator", calibrator), ("calibration", calibration), ("model", quantized), ("model", model):
    getattr(lib, f"tare_{kind}_close")(handle)
