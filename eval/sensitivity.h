/* Which layers a quantization loses accuracy in: each one quantized alone, each one left in float, and how accuracy
 * comes back as the worst are left in float one after the other. */
#ifndef TARE_EVAL_SENSITIVITY_H
#define TARE_EVAL_SENSITIVITY_H

#include "eval/comparison.h"
#include "eval/report/report_table.h"
#include "eval/variant.h"

/* The first output against the float model's. NaN where the records say nothing. */
struct tare_sensitivity_figures {
    double sqnr_db;         /* HUGE_VAL: exact */
    double top1, agreement; /* shares 0 … 1 */
};

struct tare_sensitive_layer {
    const char *function, *node, *op;
    int64_t weight_elements;
    struct tare_sensitivity_figures alone;    /* only this layer is quantized */
    struct tare_sensitivity_figures restored; /* all but this one are */
    struct tare_sensitivity_figures kept;     /* this one and all that are worse stay float */
};

struct tare_sensitivity {
    struct tare_arena arena;
    const char *method, *algorithm, *granularity; /* of the quantization; borrowed from the variant */
    int64_t records;
    struct tare_sensitivity_figures float_model, all; /* of the float model, of all layers quantized */
    struct tare_sensitive_layer *layers;              /* the worst first: by SQNR alone, then by name */
    size_t count;
    bool whole;                     /* every model ran as a whole: it has state, or outputs that batches do not split */
    int64_t kept_bytes;             /* most that kept activations took */
    int64_t run_nodes, whole_nodes; /* that ran, and that would have run had each model run as a whole */
    double seconds;
};

struct tare_sensitivity_task {
    const char *model;                    /* SavedModel directory */
    const struct tare_op_registry *ops;   /* that it is opened with; NULL: the built-in ones */
    const struct tare_variant *variant;   /* one that quantizes */
    struct tare_calibration *calibration; /* NULL where the variant needs none */
    const char *signature, *label;
    const struct tare_runner_options *runner;
    int threads;
    bool quiet;     /* no progress */
    int64_t memory; /* bytes for activations that are kept and fed to later models (eval/prefix_cache.h); 0: a gigabyte;
                       below: none are kept, every model runs as a whole. Figures are the same whatever it is */
};

/* Measures 3 n + 1 models of n layers, each from the first layer on that differs from the models before it. `out` is
 * the caller's to free, also after a failure. */
tare_status tare_sensitivity_measure(struct tare_sensitivity *out,
                                     const struct tare_sensitivity_task *task) TARE_WARN_UNUSED;
void tare_sensitivity_free(struct tare_sensitivity *sensitivity);

/* The table of the layers alone, the worst first; with what was measured, and how, above it, as text. `width`: the line
 * that the table should fit into, 0: any. */
void tare_sensitivity_layers(struct tare_strbuf *out, enum tare_report_form form,
                             const struct tare_sensitivity *sensitivity, size_t width);
void tare_sensitivity_table(struct tare_strbuf *out, const struct tare_sensitivity *sensitivity, size_t width);
/* A recipe (quant/recipe.h) that leaves the `worst` worst layers in float. */
void tare_sensitivity_recipe(struct tare_strbuf *out, const struct tare_sensitivity *sensitivity, size_t worst);

#endif
