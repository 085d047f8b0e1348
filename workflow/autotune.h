/* Choosing how a model is quantized: range algorithms, accuracy passes and exceptions layer by layer, from statistics
 * and from the SQNR of the first output on representative samples. Labels are not looked at. */
#ifndef TARE_WORKFLOW_AUTOTUNE_H
#define TARE_WORKFLOW_AUTOTUNE_H

#include "eval/comparison.h"
#include "eval/variant.h"

/* Everything is borrowed. */
struct tare_autotune_task {
    const char *model;                  /* SavedModel directory */
    const struct tare_op_registry *ops; /* NULL: the built-in ones */
    const struct tare_variant
        *variant; /* method, bits and granularity that layers get unless they do badly; no recipe */
    struct tare_calibration *calibration; /* with channels and Hessians */
    const char *signature;
    const char *const
        *data; /* representative samples, as calibration takes them: the first TARE_AUTOTUNE_RECORDS are run */
    size_t n_data;
    const struct tare_dataset_spec *spec;     /* what records become; NULL: they are samples */
    const volatile sig_atomic_t *interrupted; /* NULL: never */
    int threads;
    bool quiet;
};

enum { TARE_AUTOTUNE_RECORDS = 128 };

struct tare_autotune_layer {
    const char *function, *node, *op;
    const char *input_node; /* whose output is the activation; NULL: it has none */
    int input_output;
    double alone_db; /* SQNR of the output when this layer alone is quantized as all are */
    /* What it gets instead of what all get; NULL and 0: the same. */
    const char *algorithm, *method, *granularity; /* method may be "float" */
    int bits;
    const char *why; /* never NULL */
};

struct tare_autotune {
    struct tare_arena arena;
    const char *method;    /* that all layers get but the exceptions */
    const char *algorithm; /* likewise; NULL: no layer has a range, or each its own */
    const char *passes;    /* "gptq,bias_correction"; "": none */
    struct tare_autotune_layer *layers;
    size_t count;
    double plain_db, db; /* of the first output: before anything was chosen, and with all that was chosen */
    int64_t records;
    int models;                  /* that were measured */
    struct tare_variant variant; /* what was chosen, to be applied; its method is called "auto" */
};

/* `out` is the caller's to free, also after a failure. */
tare_status tare_workflow_autotune_choose(struct tare_autotune *out,
                                          const struct tare_autotune_task *task) TARE_WARN_UNUSED;
void tare_workflow_autotune_free(struct tare_autotune *automatic);

/* What was chosen and why, layer by layer; and the same as a recipe (quant/recipe.h) with its passes. */
void tare_workflow_autotune_table(struct tare_strbuf *out, const struct tare_autotune *automatic);
void tare_workflow_autotune_recipe(struct tare_strbuf *out, const struct tare_autotune *automatic);

#endif
