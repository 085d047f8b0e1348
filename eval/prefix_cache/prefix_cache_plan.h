/* The values that a set of models shares, and the part of each model that runs. Used by
 * eval/prefix_cache/prefix_cache*.c only. */
#ifndef TARE_EVAL_PREFIX_CACHE_PLAN_H
#define TARE_EVAL_PREFIX_CACHE_PLAN_H

#include "base/map.h"
#include "eval/prefix_cache/edge_keys.h"
#include "eval/records.h"

/* The value of all edges that have one key. */
struct tare_prefix_cache_value {
    struct tare_edge_key key;
    size_t owner;                /* the first model that computes it */
    size_t last_user;            /* the last model that uses it; `owner`: none */
    bool refused;                /* it did not fit into the budget */
    struct tare_tensor *tensors; /* by batch while it is kept, otherwise NULL */
    size_t n_tensors;
    int64_t bytes;
};

struct tare_prefix_cache_plan {
    struct tare_arena arena;
    bool costly_only; /* only values that a costly op computes are kept (struct tare_prefix_cache_task) */
    bool *shares;     /* by model: it keeps a value for a later one, or is fed with one; NULL: not requested */
    double *cost;     /* by model, with `shares`: of all its nodes that depend on the record … */
    double *saved;    /* … and of those that values of earlier models replace */
    struct tare_map by_key;
    struct tare_prefix_cache_value **values;
    size_t n_values, capacity;
};

/* The part of one model's inlined main graph that runs. */
struct tare_prefix_cache_route {
    struct tare_arena arena;
    struct tare_edge *fed; /* edges fed with kept values */
    struct tare_prefix_cache_value **fed_values;
    size_t n_fed;
    struct tare_edge *left; /* edges whose values are kept for later models */
    struct tare_prefix_cache_value **left_values;
    size_t n_left;
    bool needs_inputs; /* a feed of the signature is reached */
    int64_t nodes;     /* nodes that run per record */
    int64_t whole;     /* nodes that would run per record if no values were kept */
};

/* Adds model `number`: the values that it computes, and those that earlier models can feed. Call in the order of the
 * models. */
tare_status tare_prefix_cache_plan_add(struct tare_prefix_cache_plan *plan, const struct tare_graph_model *model,
                                       const struct tare_record_edges *edges, size_t number) TARE_WARN_UNUSED;
/* Finds the edges to feed with the values that are kept now, and the edges to keep for later models. Release with
 * tare_prefix_cache_route_free, also after a failure. */
tare_status tare_prefix_cache_route_of(struct tare_prefix_cache_route *out, struct tare_prefix_cache_plan *plan,
                                       const struct tare_graph_model *model, const struct tare_record_edges *edges,
                                       size_t number) TARE_WARN_UNUSED;
void tare_prefix_cache_route_free(struct tare_prefix_cache_route *route);
/* Frees the tensors of a value. */
void tare_prefix_cache_value_drop(struct tare_prefix_cache_value *value);
void tare_prefix_cache_plan_free(struct tare_prefix_cache_plan *plan);

#endif
