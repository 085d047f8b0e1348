/* What of a set of models is kept for the later ones. Inside eval/prefix_cache*.c only. */
#ifndef TARE_EVAL_PREFIX_CACHE_PLAN_H
#define TARE_EVAL_PREFIX_CACHE_PLAN_H

#include "base/map.h"
#include "eval/edge_keys.h"
#include "eval/records.h"

/* What edges with one key compute. */
struct tare_prefix_cache_value {
    struct tare_edge_key key;
    size_t owner;                /* the first model that computes it */
    size_t last_user;            /* the last model that is fed it; `owner`: none */
    bool refused;                /* it did not fit into the memory */
    struct tare_tensor *tensors; /* by batch, while it is kept; NULL */
    size_t n_tensors;
    int64_t bytes;
};

struct tare_prefix_cache_plan {
    struct tare_arena arena;
    struct tare_map by_key;
    struct tare_prefix_cache_value **values;
    size_t n_values, capacity;
};

/* One model's way through its inlined main graph. */
struct tare_prefix_cache_route {
    struct tare_arena arena;
    struct tare_edge *fed; /* edges that are fed kept values */
    struct tare_prefix_cache_value **fed_values;
    size_t n_fed;
    struct tare_edge *left; /* edges whose values are to be kept */
    struct tare_prefix_cache_value **left_values;
    size_t n_left;
    bool needs_inputs; /* a feed of the signature is reached */
    int64_t nodes;     /* that run for every record */
    int64_t whole;     /* that would run for every record, were nothing kept */
};

/* Notes what model `number` computes and what it can be fed by those before it. The models come in order. */
tare_status tare_prefix_cache_plan_add(struct tare_prefix_cache_plan *plan, const struct tare_model *model,
                                       const struct tare_record_edges *edges, size_t number) TARE_WARN_UNUSED;
/* From where the model runs with what is kept now, and what it leaves for later ones. End with
 * tare_prefix_cache_route_free, also after a failure. */
tare_status tare_prefix_cache_route_of(struct tare_prefix_cache_route *out, struct tare_prefix_cache_plan *plan,
                                       const struct tare_model *model, const struct tare_record_edges *edges,
                                       size_t number) TARE_WARN_UNUSED;
void tare_prefix_cache_route_free(struct tare_prefix_cache_route *route);
/* Ends what is kept of a value. */
void tare_prefix_cache_value_drop(struct tare_prefix_cache_value *value);
void tare_prefix_cache_plan_free(struct tare_prefix_cache_plan *plan);

#endif
