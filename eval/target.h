/* Searches for the fewest layers that must stay float to meet a target: a maximum loss of accuracy, a minimum SQNR, a
 * maximum size. Candidates are ordered by sensitivity and only deciding mixes are measured. The search does not know
 * models: the caller measures sets of layers. */
#ifndef TARE_EVAL_TARGET_H
#define TARE_EVAL_TARGET_H

#include "eval/sensitivity.h"

struct tare_target {
    double max_drop;    /* of top-1 against float, in percentage points; infinity: not limited */
    double min_sqnr_db; /* -infinity: not limited */
    int64_t max_bytes;  /* of constants and variables; 0: not limited */
};

/* One mix: some layers in float, the others quantized. */
struct tare_target_point {
    size_t *kept; /* layers in float: indexes into the sensitivity's layers */
    size_t n_kept;
    int64_t size_bytes;
    struct tare_sensitivity_figures figures;
    bool meets;  /* all parts of the target */
    bool pareto; /* Pareto-optimal: no other measured mix is at most as large and more accurate */
};

/* Callbacks of the search. Both receive the layers that stay float. */
struct tare_target_task {
    const struct tare_target *target;
    const struct tare_sensitivity *sensitivity;
    double float_top1; /* on the records of `measure`; NaN: they have no labels */
    tare_status (*size)(void *arg, int64_t *bytes, const size_t *kept, size_t n_kept); /* without running the model */
    tare_status (*measure)(void *arg, struct tare_target_point *point);                /* sets size_bytes and figures */
    void *arg;
};

struct tare_target_result {
    struct tare_arena arena;
    const struct tare_sensitivity *sensitivity;
    struct tare_target target;
    double float_top1;
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

void tare_target_table(struct tare_strbuf *out, const struct tare_target_result *result);
/* Writes a recipe (quant/recipe.h) that keeps the chosen layers in float. */
void tare_target_recipe(struct tare_strbuf *out, const struct tare_target_result *result);

#endif
