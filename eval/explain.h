/* Why a quantization loses what it loses, layer by layer: rounding against clipping of the activation, codes that nothing
 * uses, how much the channels of the weight differ, and what would help. */
#ifndef TARE_EVAL_EXPLAIN_H
#define TARE_EVAL_EXPLAIN_H

#include "calib/calibration.h"
#include "eval/variant.h"

struct tare_strbuf;

struct tare_explanation {
    const char *function, *node, *op;
    const char *refused; /* why it stays float; NULL: it is quantized, and the fields below are filled */
    const char *method;
    int bits; /* of the weight; 0: there is none */
    int64_t weight_elements;
    double weight_sqnr_db;
    double spread; /* greatest over median magnitude of the weight's channels; 1: they are alike */
    bool has_input; /* the activation has a grid that was fixed by calibration */
    struct tare_qparams input;
    double rounding_mse, clipping_mse; /* of the activation, per value */
    double clipped;                    /* share of its values */
    double input_sqnr_db;
    int unused_codes; /* of the grid's integers: no value falls on them */
    const char *remedy; /* NULL: nothing stands out */
};

struct tare_explanation_list {
    struct tare_explanation *items; /* arena memory */
    size_t count;
};

/* One a layer of the report. `calibration` may be NULL for methods without ranges. */
tare_status tare_explain(struct tare_explanation_list *out, struct tare_arena *arena, const struct tare_quant_report *report,
                         const struct tare_variant *variant, const struct tare_calibration *calibration) TARE_WARN_UNUSED;
void tare_explanations_table(struct tare_strbuf *out, const struct tare_explanation_list *list);

#endif
