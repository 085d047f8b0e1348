/* What models are measured with: a command fills the struct once, and all that measures borrows it. */
#ifndef TARE_EVAL_EVALUATION_H
#define TARE_EVAL_EVALUATION_H

#include "eval/comparison.h"
#include "eval/variant_source.h"

/* Everything is borrowed. */
struct tare_evaluation {
    struct tare_variant_source *source;   /* of the model and its variants; NULL: the caller loads its models */
    struct tare_calibration *calibration; /* of the variants; NULL: none */
    const char *signature;                /* NULL: serving_default, or the only one */
    struct tare_runner_options records;
    /* Key of the class index, one number per row (records without it are unlabelled), or of an output: the records'
     * tensor of that name is then its expected value. "label" that is the name of an input is no label. NULL: none. */
    const char *label;
    const char *target_key; /* key of expected values; NULL: none */
    int metric;             /* measure requested: 1 + enum tare_measure_kind; 0: inferred */
    int threads;            /* workers with one session each, for models without state; 0: 1 */
    bool quiet;             /* no progress */
};

/* Runs the signature of a model over the records and adds its row. */
tare_status tare_evaluate(struct tare_comparison_row **out, struct tare_comparison *comparison,
                          const struct tare_graph_model *model,
                          const struct tare_evaluation *evaluation) TARE_WARN_UNUSED;
/* Adds the row of the float model as loaded, without preparation. `known` (NULL: the model runs): a comparison whose
 * first row is the float model on these records, and perhaps more, whose outputs are used. */
tare_status tare_evaluate_float(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                const struct tare_evaluation *evaluation,
                                const struct tare_comparison *known) TARE_WARN_UNUSED;

#endif
