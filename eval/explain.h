/* What became of each layer, and why a quantization loses what it loses: parameters, rounding against clipping of the
 * activation, codes that nothing uses, how much the channels of the weight differ, and what would help. */
#ifndef TARE_EVAL_EXPLAIN_H
#define TARE_EVAL_EXPLAIN_H

#include "calib/calibration.h"
#include "calib/algorithm.h"
#include "quant/rewrite.h"

#include <jansson.h>

struct tare_strbuf;

struct tare_explanation {
    const char *function, *node, *op;
    const char *refused; /* why it stays float; NULL: it is quantized, and the fields below are filled */
    const char *method;
    struct tare_quant_setting setting;
    int bits;                                  /* of the weight; 0: there is none */
    double weight_scales[TARE_OUTCOME_SCALES]; /* the first of them */
    int64_t n_weight_scales;
    int64_t weight_elements;
    double weight_sqnr_db;
    double spread;             /* greatest over median magnitude of the weight's channels; 1: they are alike */
    struct tare_qparams input; /* of the activation; scale 0: it is found while the model runs, or there is none */
    bool has_input; /* what the grid costs is known: the calibration saw the activation that it was made for */
    double rounding_mse, clipping_mse; /* of the activation, per value */
    double clipped;                    /* share of its values */
    double input_sqnr_db;
    int unused_codes;   /* of the grid's integers: no value falls on them */
    const char *remedy; /* NULL: nothing stands out */
};

struct tare_explanation_list {
    struct tare_explanation *items; /* arena memory */
    size_t count;
};

/* One a layer of the report, whose ranges `algorithm` made of the calibration where no rule named another; NULL: none
 * were. advise: every other algorithm is tried for the remedy, too. Texts are the arena's. */
tare_status tare_explain(struct tare_explanation_list *out, struct tare_arena *arena,
                         const struct tare_quant_report *report, const struct tare_calibration *calibration,
                         const struct tare_algorithm_choice *algorithm, bool advise) TARE_WARN_UNUSED;
/* Why layers lose what they lose. `width` here and below: the line that tables should fit into (base/text_table.h). */
void tare_explanations_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width);
/* What quantized layers became: parameters, expected noise; then those that stay float, and why. */
void tare_layers_table(struct tare_strbuf *out, const struct tare_explanation_list *list, size_t width);
/* All of it; a new reference. */
json_t *tare_explanations_json(const struct tare_explanation_list *list);

#endif
