/* The fewest layers left in float for a target: accuracy that may be lost, a signal to noise ratio, a size. Goes by
 * sensitivity scores and measures only what decides; knows no models: the caller measures sets of layers. */
#ifndef TARE_EVAL_TARGET_H
#define TARE_EVAL_TARGET_H

#include "eval/sensitivity.h"

struct tare_target {
    double max_drop;    /* of top-1 below the float model's, in points; infinity: any */
    double min_sqnr_db; /* -infinity: any */
    int64_t max_bytes;  /* of constants and variables; 0: any */
};

/* One mix: some layers in float, the others quantized. */
struct tare_target_point {
    size_t *kept; /* layers in float: indexes into the sensitivity's layers */
    size_t n_kept;
    int64_t size_bytes;
    struct tare_sensitivity_figures figures;
    bool meets;  /* the whole target */
    bool pareto; /* no other measured mix is at most as large and better */
};

/* How a search sees models. Both take the layers that stay float. */
struct tare_target_task {
    const struct tare_target *target;
    const struct tare_sensitivity *sensitivity;
    double float_top1; /* on the records of `measure`; NAN: they have no labels */
    tare_status (*size)(void *arg, int64_t *bytes, const size_t *kept, size_t n_kept); /* without running it */
    tare_status (*measure)(void *arg, struct tare_target_point *point); /* fills size_bytes and figures */
    void *arg;
};

struct tare_target_result {
    struct tare_arena arena;
    const struct tare_sensitivity *sensitivity;
    struct tare_target target;
    double float_top1;
    struct tare_target_point *points; /* every mix that was measured, the largest first */
    size_t n_points;
    const struct tare_target_point *chosen; /* NULL: no mix meets the target */
    const char *best;                       /* then: what the best of them reaches, as a sentence */
};

/* Searches along the layers in the order of their loss (with a size: of their loss a byte): by halves for the first
 * place from which all behind quantized meet the target, then each layer that stayed float is tried quantized. Without
 * an accuracy to meet, as many layers as the size allows stay float. TARE_INVALID_ARGUMENT: a drop without labels, no
 * target. `out` is the caller's to free, also after a failure. */
tare_status tare_target_search(struct tare_target_result *out, const struct tare_target_task *task) TARE_WARN_UNUSED;
void tare_target_free(struct tare_target_result *result);

/* Reads a size: "250000", "80%" (of `whole`), "1.5MB", "300kB". */
tare_status tare_target_read_size(int64_t *bytes, const char *text, int64_t whole) TARE_WARN_UNUSED;

void tare_target_table(struct tare_strbuf *out, const struct tare_target_result *result);
/* A recipe (quant/recipe.h) that leaves the chosen layers in float. */
void tare_target_recipe(struct tare_strbuf *out, const struct tare_target_result *result);

#endif
