/* What quantize, convert and compare share: a prepared model, its calibration, and the ranges that follow from it. */
#ifndef TARE_CLI_QUANTIZING_H
#define TARE_CLI_QUANTIZING_H

#include "convert/options.h"
#include "convert/pipeline.h"
#include "graph/model.h"

/* Exact extremes of the observed edges of one model. */
struct tare_observed_ranges;

/* Loads a model and brings it to the form that is calibrated and quantized. */
tare_status tare_load_prepared(struct tare_model **out, const char *path);
/* Runs the samples of `paths` through a signature and observes what quantization needs to know. */
tare_status tare_observe_ranges(struct tare_observed_ranges **out, const struct tare_model *model,
                                const char *signature, const char *const *paths, size_t n_paths, int batch, int64_t limit);
void tare_observed_ranges_free(struct tare_observed_ranges *ranges);
/* The ranges as the rewrites ask for them: by function, node and output, so that they serve any prepared copy of the
 * model. */
struct tare_quant_ranges tare_ranges_of(const struct tare_observed_ranges *ranges);

/* Prints what became of each quantizable op. */
void tare_print_quant_report(const struct tare_quant_report *report);

#endif
