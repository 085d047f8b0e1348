/* Searches for the fewest layers that must stay float, or steps to higher precision, to meet a target: a maximum loss
 * of accuracy, a minimum SQNR, a maximum error or size. Candidates are ordered by sensitivity and only deciding mixes
 * are measured. The search does not know models: the caller measures sets of steps. */
#ifndef TARE_EVAL_TARGET_H
#define TARE_EVAL_TARGET_H

#include "eval/measure.h"
#include "eval/sensitivity.h"

struct tare_target {
    double max_drop;    /* of the measure, in points (struct tare_sensitivity_figures); infinity: not limited */
    double min_sqnr_db; /* -infinity: not limited */
    int64_t max_bytes;  /* of constants and variables; 0: not limited */
    double max_mae;     /* mean absolute error against expected values; 0: not limited */
};

/* One mix. With one step per layer, the layers of `kept` are in float and the others quantized. With several, a layer
 * has as many of its steps as `kept` has, in their order. */
struct tare_target_point {
    size_t *kept; /* steps: indexes into the sensitivity's layers */
    size_t n_kept;
    int64_t size_bytes;
    struct tare_sensitivity_figures figures;
    bool meets;  /* all parts of the target */
    bool pareto; /* Pareto-optimal: no other measured mix is at most as large and more accurate */
};

/* Callbacks of the search. Both receive the steps of a mix. */
struct tare_target_task {
    const struct tare_target *target;
    const struct tare_sensitivity *sensitivity;
    double float_score; /* of the float model on the records of `measure`; NaN: its measure has no score */
    double float_mae;   /* likewise; NaN: they have no expected values */
    const struct tare_measure *measured;                                               /* the measure; borrowed */
    tare_status (*size)(void *arg, int64_t *bytes, const size_t *kept, size_t n_kept); /* without running the model */
    tare_status (*measure)(void *arg, struct tare_target_point *point);                /* sets size_bytes and figures */
    void *arg;
};

struct tare_target_result {
    struct tare_arena arena;
    const struct tare_sensitivity *sensitivity;
    struct tare_target target;
    double float_score;
    const struct tare_measure *measured;
    struct tare_target_point *points; /* all measured mixes, the largest first */
    size_t n_points;
    const struct tare_target_point *chosen; /* NULL: no mix meets the target */
    const char *best;                       /* if `chosen` is NULL: what the best mix reaches, as a sentence */
};

/* Orders layers by their loss (for a size target: loss per byte), finds by binary search the fewest leading layers that
 * must stay float, then tries to quantize each of them again. Without an accuracy target, as many layers stay float as
 * the size allows. TARE_INVALID_ARGUMENT: a maximum drop without labels, or no target. The caller frees `out`, also
 * after a failure. */
tare_status tare_target_search(struct tare_target_result *out, const struct tare_target_task *task) TARE_WARN_UNUSED;
void tare_target_free(struct tare_target_result *result);

/* Parses a size: "250000", "80%" (of `whole`), "1.5MB", "300kB". */
tare_status tare_target_read_size(int64_t *bytes, const char *text, int64_t whole) TARE_WARN_UNUSED;

/* The last step of a layer in a mix; NULL: none, the layer has the variant's own settings. */
const struct tare_sensitive_layer *tare_target_step(const struct tare_sensitivity *steps, const size_t *kept,
                                                    size_t n_kept, const char *function, const char *node);

/* Number of layers, and of those that a mix has in float. */
size_t tare_target_layers(size_t *in_float, const struct tare_sensitivity *steps, const size_t *kept, size_t n_kept);

void tare_target_table(struct tare_strbuf *out, const struct tare_target_result *result);
/* Writes the rules of a recipe (quant/recipe.h) with the precisions of the chosen mix; the target as a comment. */
void tare_target_recipe(struct tare_strbuf *out, const struct tare_target_result *result);
void tare_target_heading(struct tare_strbuf *out, const struct tare_target_result *result);

#endif
