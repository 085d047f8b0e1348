/* What quantize, convert and compare share: a prepared model, its calibration, and the ranges that follow from it. */
#ifndef TARE_CLI_QUANTIZING_H
#define TARE_CLI_QUANTIZING_H

#include "calib/algorithm.h"
#include "calib/calibration.h"
#include "convert/options.h"
#include "convert/pipeline.h"
#include "graph/model.h"

/* A calibration, and the algorithm that makes ranges of it. */
struct tare_calibrated_ranges {
    struct tare_calibration *calibration;
    struct tare_algorithm_choice algorithm;
};

/* Loads a model and brings it to the form that is calibrated and quantized. */
tare_status tare_load_prepared(struct tare_model **out, const char *path);
/* Runs the samples of `paths` through a signature, one at a time in the order of the files, and counts what quantization
 * needs to know. `limit` 0: all samples. *out is the caller's. */
tare_status tare_calibrate_files(struct tare_calibration **out, const struct tare_model *model, const char *signature,
                                 const char *const *paths, size_t n_paths, int64_t limit);
/* Reads a calibration file of this prepared model. */
tare_status tare_calibration_load_for(struct tare_calibration **out, const struct tare_model *model, const char *path);
/* The ranges as the rewrites ask for them: by function, node and output, so that they serve any prepared copy of the
 * model. */
struct tare_quant_ranges tare_ranges_of(const struct tare_calibrated_ranges *ranges);

/* Prints what became of each quantizable op. */
void tare_print_quant_report(const struct tare_quant_report *report);

#endif
