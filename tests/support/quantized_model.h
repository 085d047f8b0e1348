/* A model of one input and one output that is calibrated on samples of its own and quantized, for tests of accuracy
 * passes. */
#ifndef TARE_TESTS_SUPPORT_QUANTIZED_MODEL_H
#define TARE_TESTS_SUPPORT_QUANTIZED_MODEL_H

#include "base/arena.h"
#include "calib/calibration.h"
#include "quant/rewrite.h"
#include "support/mini_model.h"

struct quantized_model {
    struct tare_model *model;
    struct tare_graph *graph; /* a function that main calls */
    struct tare_edge in;      /* its argument */
    struct tare_edge x, y;    /* of main */
    struct tare_tensor samples;
    struct tare_calibration *calibration; /* by channel, with Hessians */
    struct tare_tally *tally;
    struct tare_arena arena;
    struct tare_quant_report report;
};

/* A model with an empty function of one argument, and normal samples [rows, columns] whose column c is c's spread. */
void quantized_model_begin(struct quantized_model *m, int rows, int columns, double spread, uint64_t seed);
/* Ends the function with what it returns. */
void quantized_model_return(struct quantized_model *m, struct tare_edge y);
void quantized_model_end(struct quantized_model *m);
/* A float constant of rank 2, or 1 where rows is 0: normal numbers times `size`, row r times `spread`^-r. */
struct tare_edge quantized_model_weight(struct quantized_model *m, const char *name, int rows, int columns, double size,
                                        double spread, uint64_t seed);
/* Runs the samples through the model and counts what quantization asks for; then quantizes. */
void quantized_model_quantize(struct quantized_model *m, const struct tare_quant_options *options, const char *passes);
/* y of the samples; the caller resets it. */
struct tare_tensor quantized_model_run(struct quantized_model *m);
/* Mean square difference of two answers, over the mean square of the second. */
double quantized_model_loss(const struct tare_tensor *got, const struct tare_tensor *expected);
float quantized_model_normal(uint64_t *seed);
/* Live nodes of an op in the function. */
int quantized_model_count(const struct quantized_model *m, const char *op);

#endif
