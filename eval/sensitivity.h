/* Accuracy that a quantization loses in each layer: with the layer quantized alone, with it kept in float alone, and
 * with the worst layers kept in float, one more at a time. */
#ifndef TARE_EVAL_SENSITIVITY_H
#define TARE_EVAL_SENSITIVITY_H

#include "eval/evaluation.h"
#include "eval/report/report_table.h"

/* A model compared with the float model: the SQNR at the worst output (tare_worst_sqnr_db), all else at the measured
 * output (tare_measured_output). NaN: not measured. */
struct tare_sensitivity_figures {
    double sqnr_db;         /* infinite: exact */
    double top1, agreement; /* shares 0 … 1 */
    double mae;             /* mean absolute error against expected values */
    /* The measure (eval/measure.h) so that more is better and a difference of 0.01 is one point: a share 0 … 1, AUC or
     * R² as they are, decibels / 100, minus an error relative to the float model's. */
    double score;
    double value; /* the measure in its own unit (tare_measure_value) */
};

/* By how much a loss in points may exceed a limit: those of whole records are not exact in binary. */
#define TARE_POINTS_SLACK 1e-9

/* The figures of a row of a comparison, of which `outputs` are the metrics; the comparison's first row is the float
 * model. */
struct tare_sensitivity_figures tare_sensitivity_figures_of(const struct tare_comparison *comparison,
                                                            const struct tare_metrics *outputs);

struct tare_sensitive_layer {
    const char *function, *node, *op;
    int64_t weight_elements;
    struct tare_sensitivity_figures alone;    /* only this layer quantized */
    struct tare_sensitivity_figures restored; /* all but this layer quantized */
    struct tare_sensitivity_figures kept;     /* this layer and all worse ones kept in float */
    const char *setting; /* settings of the layer that are not the variant's, as a recipe has them; "": none */
    /* In the steps of a search among several precisions (workflow/precision_levels.h), what the layer becomes with this
     * step: `quantized` with these bits, or float. All zero: float is the only step. */
    size_t level; /* number of the layer's step, from 0 */
    bool quantized;
    int bits, activation_bits;
};

struct tare_sensitivity {
    struct tare_arena arena;
    const char *method, *algorithm, *granularity; /* of the quantization; borrowed from the variant */
    int64_t records;
    size_t n_outputs;                                 /* of the signature */
    struct tare_sensitivity_figures float_model, all; /* the float model; all layers quantized */
    struct tare_sensitive_layer *layers;              /* the worst first: by SQNR alone, then by name */
    size_t count;
    double seconds;
};

struct tare_sensitivity_task {
    const struct tare_evaluation *evaluation;
    const struct tare_variant *variant;  /* one that quantizes */
    const struct tare_comparison *known; /* see tare_evaluate_float */
    int64_t limit;                       /* number of the evaluation's records, at most; 0: all */
    bool alone_only;                     /* only `alone` is measured */
};

/* Measures 3 n + 1 models for n layers. The caller frees `out`, also after a failure. */
tare_status tare_sensitivity_measure(struct tare_sensitivity *out,
                                     const struct tare_sensitivity_task *task) TARE_WARN_UNUSED;
/* The layer, NULL if it was not measured; `sensitivity` may be NULL. */
const struct tare_sensitive_layer *tare_sensitivity_find(const struct tare_sensitivity *sensitivity,
                                                         const struct tare_explanation *layer);
/* What a layer loses: as it was measured alone, or else by the calibration. Infinite: nothing. */
double tare_layer_db(const struct tare_sensitivity *sensitivity, const struct tare_explanation *layer);
void tare_sensitivity_free(struct tare_sensitivity *sensitivity);

/* tare_sensitivity_layers: the table of the layers, the worst first. tare_sensitivity_table: the same as text, after a
 * summary of the measurement. `width`: characters per line that the table should fit into, 0: unlimited. */
void tare_sensitivity_layers(struct tare_strbuf *out, enum tare_report_form form,
                             const struct tare_sensitivity *sensitivity, size_t width);
void tare_sensitivity_table(struct tare_strbuf *out, const struct tare_sensitivity *sensitivity, size_t width);
/* Writes a recipe (quant/recipe.h) that keeps the `worst` worst layers in float. */
void tare_sensitivity_recipe(struct tare_strbuf *out, const struct tare_sensitivity *sensitivity, size_t worst);

#endif
