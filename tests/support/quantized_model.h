/* A model with one input and one output, calibrated on its own samples and quantized, for tests of accuracy passes. */
#ifndef TARE_TESTS_SUPPORT_QUANTIZED_MODEL_H
#define TARE_TESTS_SUPPORT_QUANTIZED_MODEL_H

#include "base/arena.h"
#include "calib/calibration.h"
#include "quant/quantize.h"
#include "support/mini_model.h"

struct quantized_model {
    struct tare_graph_model *model;
    struct tare_graph *graph; /* a function called by main */
    struct tare_edge in;      /* its argument */
    struct tare_edge x, y;    /* input and output of main */
    struct tare_tensor samples;
    struct tare_calibration *calibration; /* per channel, with Hessians */
    struct tare_tally *tally;
    struct tare_arena arena;
    struct tare_quant_report report;
};

/* Creates a model with an empty function of one argument, and normally distributed samples [rows, columns] with
 * standard deviation spread^c in column c. */
void quantized_model_begin(struct quantized_model *m, int rows, int columns, double spread, uint64_t seed);
/* Sets the return value of the function. */
void quantized_model_return(struct quantized_model *m, struct tare_edge y);
void quantized_model_end(struct quantized_model *m);
/* A float constant of rank 2, or 1 if rows is 0: normal numbers times `size`, row r times `spread`^-r. */
struct tare_edge quantized_model_weight(struct quantized_model *m, const char *name, int rows, int columns, double size,
                                        double spread, uint64_t seed);
/* Runs the samples through the model, collects the statistics that quantization requires, and quantizes. */
void quantized_model_quantize(struct quantized_model *m, const struct tare_quant_plan *options, const char *passes);
/* Returns y for the samples; the caller resets it. */
struct tare_tensor quantized_model_run(struct quantized_model *m);
/* Mean squared difference of two outputs, relative to the mean square of the second. */
double quantized_model_loss(const struct tare_tensor *got, const struct tare_tensor *expected);
float quantized_model_normal(uint64_t *seed);
/* Number of live nodes of an op in the function. */
int quantized_model_count(const struct quantized_model *m, const char *op);

#endif
