/* From files of samples to a calibration: what calibrate, quantize, convert and compare share. */
#ifndef TARE_CLI_CALIBRATING_H
#define TARE_CLI_CALIBRATING_H

#include "calib/calibration.h"
#include "datasets/spec.h"
#include "graph/model.h"

/* Runs the samples of `paths` through a signature, one at a time in the order of the files, and counts what quantization
 * needs to know. `limit` 0: all samples; `spec` NULL: records are samples. *out is the caller's. */
tare_status tare_calibrate_files(struct tare_calibration **out, const struct tare_model *model, const char *signature,
                                 const char *const *paths, size_t n_paths, int64_t limit,
                                 const struct tare_dataset_spec *spec);

#endif
