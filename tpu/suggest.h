/* Suggests functions to place on the TPU: the largest ones that it supports as a whole. */
#ifndef TARE_TPU_SUGGEST_H
#define TARE_TPU_SUGGEST_H

#include "graph/model.h"

struct tare_tpu_suggestion {
    const struct tare_graph *function;
    const char *alias; /* NULL: it has none */
    size_t ops;        /* that compute, the function's callees included */
};

/* A function that cannot be placed as a whole, and how to split it. */
struct tare_tpu_remark {
    const struct tare_graph *function;
    const char *text; /* one line */
};

struct tare_tpu_suggestions {
    struct tare_tpu_suggestion *items; /* none runs inside another; the largest first */
    size_t count;
    size_t covered, ops; /* ops in the suggested functions, and in all that the signatures run */
    struct tare_tpu_remark *remarks;
    size_t n_remarks;
};

/* Descends from the signatures' functions: suggests those without errors (tpu/compatibility.h), or the function with an
 * alias that computes all of such a function; for others, reports why
 * and where they are incompatible, and checks the functions that they call. Arena memory. */
tare_status tare_tpu_suggest(struct tare_tpu_suggestions *out, struct tare_arena *arena,
                             const struct tare_graph_model *model);

#endif
