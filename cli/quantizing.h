/* What quantize, convert and compare share: calibrating, and telling what became of each op. */
#ifndef TARE_CLI_QUANTIZING_H
#define TARE_CLI_QUANTIZING_H

#include "convert/pipeline.h"
#include "convert/prepared.h"

/* Runs the samples of `paths` through a signature, one at a time in the order of the files, and counts what quantization
 * needs to know. `limit` 0: all samples. *out is the caller's. */
tare_status tare_calibrate_files(struct tare_calibration **out, const struct tare_model *model, const char *signature,
                                 const char *const *paths, size_t n_paths, int64_t limit);
/* Prints what became of each quantizable op. */
void tare_print_quant_report(const struct tare_quant_report *report);

#endif
