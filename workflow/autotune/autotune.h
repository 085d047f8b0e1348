/* Automatic choice of calibration algorithm, accuracy passes and per-layer overrides, from calibration statistics and
 * the SQNR of the worst output (eval/measure.h) on samples that were held out of the calibration. If the samples
 * have labels or expected values, the measure of the task decides first. */
#ifndef TARE_WORKFLOW_AUTOTUNE_H
#define TARE_WORKFLOW_AUTOTUNE_H

#include "eval/evaluation.h"

/* Everything is borrowed. */
struct tare_autotune_task {
    /* Its calibration has statistics per channel and Hessians; spec, feedback and interruption of its records are
     * those of the samples. */
    const struct tare_evaluation *evaluation;
    const char *const *data; /* representative samples, as for calibration; every fourth is held out, and at most
                              TARE_AUTOTUNE_RECORDS of these are run */
    size_t n_data;
    const struct tare_variant *variant; /* default method, bits and granularity of the layers; without rules */
    bool may_lack_measure;              /* samples without data for target_key and metric: the SQNR decides */
};

enum { TARE_AUTOTUNE_RECORDS = 128 };

struct tare_autotune_layer {
    const char *function, *node, *op;
    const char *input_node; /* the node that computes the activation; NULL: none */
    int input_output;
    double alone_db; /* SQNR of the worst output if only this layer is quantized, with the default settings */
    /* Overrides; NULL and 0: the default. */
    const char *algorithm, *method, *granularity; /* method may be "float" */
    int bits, activation_bits;
    const char *why; /* never NULL */
};

struct tare_autotune {
    struct tare_arena arena;
    const char *method;    /* default of the layers */
    const char *algorithm; /* likewise; NULL: no layer needs a range, or each has its own */
    const char *passes;    /* "gptq,bias_correction"; "": none */
    struct tare_autotune_layer *layers;
    size_t count;
    size_t n_outputs;                   /* of the signature */
    double plain_db, db;                /* SQNR of the worst output: without and with all choices */
    const struct tare_measure *measure; /* of the task; NULL: the samples have no labels or expected values */
    double plain_value, value;          /* by that measure: without and with all choices */
    double least_loss;                  /* of `value` against float in points, at least, at 95 %; NaN: not known */
    int64_t records;
    bool held_out;               /* the records were not used for calibration */
    int models;                  /* number of models that were measured */
    struct tare_variant variant; /* the choices as a variant named "auto" */
};

/* Free `out` with tare_workflow_autotune_free, also after a failure. */
tare_status tare_workflow_autotune_choose(struct tare_autotune *out,
                                          const struct tare_autotune_task *task) TARE_WARN_UNUSED;
void tare_workflow_autotune_free(struct tare_autotune *automatic);

/* Appends the choices with their reasons as a table; their gain as a comment; the rules of a recipe, with reasons. */
void tare_workflow_autotune_table(struct tare_strbuf *out, const struct tare_autotune *automatic);
void tare_workflow_autotune_heading(struct tare_strbuf *out, const struct tare_autotune *automatic);
void tare_workflow_autotune_rules(struct tare_strbuf *out, const struct tare_autotune *automatic);

#endif
