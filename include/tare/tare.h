/* libtare: calibrates, quantizes and converts TensorFlow 2 SavedModels for Cloud TPU inference.
 *
 *     #include <tare/tare.h>                      cc program.c $(pkg-config --cflags --libs tare)
 *
 * Handles are opaque; what an open function gave, its close function ends, in any order but that a model outlives its
 * runners and a context its models. Arguments are borrowed for the call. Functions that can fail return tare_status and
 * set tare_error_text(); then *out is NULL.
 *
 * Threads: different handles may be used by different threads at the same time. A model and a calibration may be shared
 * for reading (open runners, calibrate, quantize, convert, compare, describe, write); a runner, calibrator, reader or
 * writer serves one thread at a time. The library starts threads of its own for calibration and comparison and ends
 * them before the call returns (a calibrator's: before it is closed). It installs no signal handlers and prints
 * nothing. */
#ifndef TARE_H
#define TARE_H

#include "array.h"
#include "calibration.h"
#include "compare.h"
#include "context.h"
#include "convert.h"
#include "dtype.h"
#include "model.h"
#include "quantize.h"
#include "runner.h"
#include "samples.h"
#include "status.h"
#include "version.h"

#endif
