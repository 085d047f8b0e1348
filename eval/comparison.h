/* Comparison of quantized models with the float model on the same records: figures of every model, and the data of the
 * reports. */
#ifndef TARE_EVAL_COMPARISON_H
#define TARE_EVAL_COMPARISON_H

#include "base/arena.h"
#include "base/warnings.h"
#include "calib/hash.h"
#include "eval/changed.h"
#include "eval/explain.h"
#include "eval/jobs/job_key.h"
#include "eval/metrics.h"
#include "eval/network.h"
#include "eval/reference_store.h"
#include "eval/runner.h"

/* One model's figures. */
struct tare_comparison_row {
    const char *method;             /* "float", "static"; of a given model, its name */
    const char *path;               /* directory of a given model; NULL: generated from the float model */
    const char *algorithm;          /* "min_max"; NULL: no ranges are calibrated */
    const char *granularity;        /* "per_channel"; NULL: nothing is quantized */
    bool named_granularity;         /* `method` includes the granularity: weight_only:block=32 */
    int weight_bits;                /* 8 or 4; 0: nothing is quantized */
    struct tare_metrics *outputs;   /* one per output of the signature, in its order */
    int64_t size_bytes;             /* of constants and variables */
    int64_t quantized, quantizable; /* ops */
    int64_t folded;                 /* weights of convolutions that a TPU's compiler turns into bfloat16 */
    bool companion;                 /* shows what bfloat16 costs another row: never recommended */
    int64_t widened;                /* of these, with activations of 16 bits that the options do not request */
    /* Command lines that build the model, quantized and converted, with OUT for its folder; NULL: there is none. */
    const char *quantize, *convert;
    const char *plan;             /* by which it was built, as a recipe (quant/recipe.h); NULL: nothing is quantized */
    struct tare_changed *changed; /* by output: examples with another class than the float model's; NULL: not kept */
    double seconds;
    char answers[TARE_KEY_SIZE]; /* hash of all outputs in the order of the records; independent of threads and batches
                                  */
    /* Estimates by tpu/cost/fused.h, per record in batches of chip_batch, with the whole signature on the TPU; NaN:
     * unknown. */
    double macs, integer_macs;          /* multiply-accumulates; of these, on integers of 8 or 4 bits */
    double float8_macs;                 /* and on eight-bit floats */
    double tpu_seconds;                 /* time on the comparison's chip */
    double tpu_cycles;                  /* of a batch there, by Google's compiler; 0 or NaN: not compiled */
    double hbm_bytes, activation_bytes; /* weights in its memory; peak of the batch's activations */
};

/* An op on the TPU with the ops fused into it, for the list of the slowest ops. */
struct tare_comparison_op {
    const char *function, *node, *op;
    double macs, bytes, seconds; /* per batch */
    bool integer, compute_bound; /* compute takes longer than memory traffic */
};
enum { TARE_SLOWEST_OPS = 12 }; /* that reports list */

struct tare_custom_metric; /* below */
struct tare_evaluation;    /* eval/evaluation.h */
struct tare_measure;       /* eval/measure.h */
struct tare_sensitivity;   /* eval/sensitivity.h */
struct tare_target_result; /* eval/target.h */

struct tare_comparison {
    struct tare_arena arena;
    const char *model, *data, *signature;
    const char **output_keys;
    size_t n_outputs;
    struct tare_comparison_row *rows;
    size_t n_rows, capacity;
    struct tare_comparison_skipped { /* a combination that was not measured */
        const char *method, *algorithm, *granularity;
        const char *reason;
    } * skipped;
    size_t n_skipped;
    struct tare_warnings warnings; /* of the whole command, each with its remedy */
    int64_t records, calibrations;
    int64_t leakage_shared;   /* evaluation records whose inputs are also those of a calibration sample … */
    int64_t leakage_compared; /* … of so many that were compared; 0: not compared */
    struct tare_reference_store references; /* outputs of the float model */
    struct tare_manifest_row {              /* provenance of the figures, for the page and JSON */
        const char *name, *value;
    } * manifest;
    size_t n_manifest;
    struct tare_node_place { /* an op with weights in the model's file (eval/report/node_data.h) */
        const char *function, *node;
        size_t number;
    } * places;
    size_t n_places;
    struct tare_explanation_list explanations;  /* of the first quantizing method; empty: none */
    struct tare_network network;                /* of these layers; empty: none */
    const struct tare_calibration *calibration; /* its tensors are shown in the page; NULL: none */
    const struct tare_target_result *target;    /* shown by the reports; NULL: no target */
    const struct tare_sensitivity *sensitivity; /* shown by the reports; NULL: not measured */
    const char *target_key;                     /* of the evaluation, as `metric`: set by the first model */
    const char *next; /* command that builds what is recommended, or looks for more; NULL: none */
    double margin;    /* points that a recommended model may lose; 0: TARE_MARGIN (eval/verdict.h) */
    int metric;
    int chip;                         /* index into tare_tpu_chips */
    int64_t chip_batch;               /* batch size on the chip; 0: 1 */
    bool by_time;                     /* the fastest model within the margin is recommended, not the smallest */
    const char *compiler;             /* that counted the cycles of the rows; NULL: none did */
    const char *not_compiled;         /* why a model has no cycles, of the first one; NULL: all have, or need none */
    struct tare_comparison_op *costs; /* ops of the first quantizing method, the slowest first */
    size_t n_costs;
    const char *slowest_of;         /* its name */
    double slowest_total;           /* seconds of the whole model per batch */
    bool keeps_changed;             /* the rows get `changed` */
    bool wide;                      /* text: all figures of all outputs */
    size_t text_width;              /* characters per line that tables should fit into; 0: unlimited */
    struct tare_progress *progress; /* advanced per record and model; NULL: none */

    const struct tare_custom_metric *custom;   /* ranks the models instead of `metric`; NULL: none */
    const struct tare_measure *custom_measure; /* its measure; set by tare_measure_set_custom */
};

/* A metric of the caller. Its functions are called by one thread at a time: `begin` before the records of each model,
 * `record` for each record in the order of the data, `end` after the last one. */
struct tare_custom_metric {
    const char *name;
    bool lower_is_better;
    tare_status (*begin)(void *arg);
    tare_status (*record)(void *arg, const struct tare_comparison *comparison, const struct tare_sample *sample,
                          const struct tare_tensor *outputs);
    tare_status (*end)(void *arg, double *value); /* NaN: no value */
    void *arg;
};

void tare_comparison_free(struct tare_comparison *comparison);
/* Adds a combination that is not measured, with the reason. Strings are copied; algorithm and granularity may be NULL.
 */
tare_status tare_comparison_skip(struct tare_comparison *comparison, const char *method, const char *algorithm,
                                 const char *granularity, const char *reason) TARE_WARN_UNUSED;
/* Runs a model over the records and adds its row; the first model is the reference of all later ones. `signature` is
 * the model's (tare_evaluate picks the evaluation's). */
tare_status tare_comparison_add(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                const struct tare_graph_model *model, const struct tare_signature *signature,
                                const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* Adds the row of the float model to a comparison without rows, from the outputs that `known` has stored for the same
 * records (at least those of the evaluation), without running the model. `signature` is that of the model or of one
 * prepared from it. The row is that of tare_comparison_add, but for `seconds`, which is that of `known`. */
tare_status tare_comparison_add_known(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                      const struct tare_comparison *known, const struct tare_signature *signature,
                                      const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* The figures of one model, added record by record in the order of the data, for callers that run the model themselves.
 * The first pass is the reference. `outputs` is in the comparison's memory. */
struct tare_comparison_pass {
    struct tare_comparison *comparison;
    struct tare_metrics *outputs; /* one an output of the signature */
    const char *label;
    int expected_output; /* the output that `label` names; -1: `label` is a class index */
    bool is_reference, batches;
    int64_t fixed_batch; /* examples in each record of a model exported for that many; 0: not known, or one */
    int64_t record;      /* records so far */
    struct tare_hash answers;
    struct tare_changed *changed; /* by output; NULL: not kept */
    char (*first)[TARE_KEY_SIZE]; /* of the reference: hash of each output of the first record */
};
tare_status tare_comparison_pass_begin(struct tare_comparison_pass *out, struct tare_comparison *comparison,
                                       const struct tare_signature *signature, const char *label) TARE_WARN_UNUSED;
tare_status tare_comparison_pass_record(struct tare_comparison_pass *pass, const struct tare_sample *sample,
                                        const struct tare_tensor *outputs) TARE_WARN_UNUSED;
/* Frees the figures (not those of a pass whose outputs a row has taken). */
void tare_comparison_pass_end(struct tare_comparison_pass *pass);
/* Bytes of the constants and variables that the signatures use, each once; all of them if there is no signature. */
tare_status tare_model_weight_bytes(int64_t *bytes, const struct tare_graph_model *model) TARE_WARN_UNUSED;

/* Sets the row's TPU estimates and, with `each`, the comparison's costs of ops.
 * Sets the shapes of the model's inputs to those of the batch and inlines its calls: the model must not run afterwards.
 */
tare_status tare_comparison_estimate(struct tare_comparison_row *row, struct tare_comparison *comparison,
                                     struct tare_graph_model *model, const struct tare_signature *signature,
                                     bool each) TARE_WARN_UNUSED;
/* The name of the comparison's chip. */
const char *tare_comparison_chip_name(const struct tare_comparison *comparison);
int64_t tare_comparison_chip_batch(const struct tare_comparison *comparison);

/* Reports: aligned tables that end with the recommendation, JSON, CSV, and one HTML page without external references.
 */
struct tare_strbuf;
void tare_comparison_table(struct tare_strbuf *out, const struct tare_comparison *comparison);
/* The recommendation, after an empty line; the last part of the text. */
void tare_comparison_verdict(struct tare_strbuf *out, const struct tare_comparison *comparison);
tare_status tare_comparison_json(struct tare_strbuf *out, const struct tare_comparison *comparison);
/* Appends the name of a row: "static mse per_tensor". */
void tare_comparison_put_name(struct tare_strbuf *out, const struct tare_comparison_row *row);
void tare_comparison_csv(struct tare_strbuf *out, const struct tare_comparison *comparison);
void tare_comparison_html(struct tare_strbuf *out, const struct tare_comparison *comparison);

#endif
