/* Result and error of each layer of a quantization: parameters, rounding and clipping error of the activation, unused
 * codes, spread of the weight's channels, and a remedy. */
#ifndef TARE_EVAL_EXPLAIN_H
#define TARE_EVAL_EXPLAIN_H

#include "calib/calibration.h"
#include "calib/algorithm.h"
#include "quant/quantize.h"

#include <jansson.h>

struct tare_strbuf;

struct tare_explanation {
    const char *function, *node, *op;
    const char *refused; /* why the layer stays float; NULL: it is quantized and the fields below are set */
    const char *method;
    struct tare_quant_setting setting;
    int bits;                    /* of the weight; 0: no weight */
    const double *weight_scales; /* as the weight is laid out: one a channel, a block or a tensor; NULL: no weight */
    int64_t n_weight_scales;
    int64_t weight_elements;
    double weight_sqnr_db;
    double spread;             /* largest magnitude of a weight channel divided by the median; 1: all channels alike */
    struct tare_qparams input; /* of the activation; scale 0: computed at run time, or no activation is quantized */
    bool has_input;            /* the error of the grid is known: calibration observed this activation */
    double rounding_mse, clipping_mse; /* mean squared error of the activation per value */
    double clipped;                    /* share of values clipped */
    double input_sqnr_db;
    int unused_codes;       /* grid integers that no value rounds to */
    const char *remedy;     /* NULL: no remedy found */
    const char *input_node; /* the observed activation: a node of `function`; NULL: none */
    int input_output;
};

struct tare_explanation_list {
    struct tare_explanation *items; /* arena memory */
    size_t count;
};

/* Makes one explanation per layer of the report, from the calibration that the ranges were computed from (NULL: none).
 * `advise`: also try every other algorithm for the remedy. Strings are in the arena. */
tare_status tare_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                         const struct tare_quant_report *report, const struct tare_calibration *calibration,
                         bool advise) TARE_WARN_UNUSED;
/* SQNR of input and weight together, by the calibration; infinite for a layer that stays float. */
double tare_explanation_db(const struct tare_explanation *explanation);
/* Table of the error of each layer. `width` here and below: characters per line that tables should fit into
 * (base/text_table.h). */
void tare_explanations_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width);
/* Table of quantized layers with parameters and expected noise, then of layers that stay float, with the reason. */
void tare_layers_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width);
/* All explanations as JSON; a new reference. */
json_t *tare_explanations_json(const struct tare_explanation_list *list);

#endif
