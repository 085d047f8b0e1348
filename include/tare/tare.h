/* libtare: calibrates, quantizes and converts TensorFlow 2 SavedModels for Cloud TPU inference.
 *
 *     #include <tare/tare.h>                      cc program.c $(pkg-config --cflags --libs tare)
 *
 * Handles are opaque. Release every handle from tare_*_open() with the matching tare_*_close(): runners and calibrators
 * before their model, models and readers before their context. Arguments are borrowed for the duration of the call
 * unless stated otherwise, and must not be NULL unless stated otherwise; closing NULL does nothing (a writer's close
 * reports a status, and needs one). Functions that can fail return tare_status and set tare_error_text(); *out is then
 * NULL.
 *
 * Threads: different handles may be used by different threads at the same time. Handles whose type is declared
 * "thread-safe" may be used by several threads at once, until they are closed; those declared "thread-compatible" serve
 * one thread at a time. Calibration and comparison start worker threads and join them before the call
 * returns (a calibrator: before it is closed). The library prints nothing but the texts of Print and PrintV2 ops of a
 * model, on standard error. Its only signal handler is one of SIGBUS, installed when it maps a file: it handles mapped
 * files that become shorter, and passes all else to the handler that was installed before. */
#ifndef TARE_H
#define TARE_H

#include "array.h"
#include "auto.h"
#include "calibration.h"
#include "check.h"
#include "compare.h"
#include "context.h"
#include "convert.h"
#include "diff.h"
#include "dtype.h"
#include "export.h"
#include "log.h"
#include "model.h"
#include "quantize.h"
#include "records.h"
#include "runner.h"
#include "samples.h"
#include "status.h"
#include "validate.h"
#include "version.h"

#endif
