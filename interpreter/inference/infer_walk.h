/* State of one shape inference, shared by infer_shapes.c (nodes), infer_calls.c (functions) and infer_values.c (small
 * integer values that shapes depend on). Nothing else includes this. */
#ifndef TARE_INTERPRETER_INFERENCE_INFER_WALK_H
#define TARE_INTERPRETER_INFERENCE_INFER_WALK_H

#include "base/map.h"
#include "graph/model.h"
#include "interpreter/inference/infer.h"

/* What is known of one tensor. */
struct tare_fact {
    struct tare_shape shape;
    const struct tare_tensor *value; /* NULL: not known */
    /* A scalar or vector of integers of which some are known: as many dims as elements, -1 where not. NULL: nothing. */
    const struct tare_shape *partial;
    const struct tare_shape *handle; /* of a resource: the shape of its variable; NULL: unknown */
};

struct tare_kept_value {
    struct tare_tensor tensor;
    struct tare_kept_value *next;
};

struct tare_call_key {
    const struct tare_graph *callee;
    uint64_t facts; /* a hash of those of the arguments */
};

/* A callee that was inferred: the same facts of the arguments lead to the same facts of the returns. */
struct tare_inferred_call {
    struct tare_call_key key;
    const struct tare_fact *args;
    struct tare_fact *returns;
    tare_status status; /* a failure is the same each time, too */
    const char *text;
    /* 0: complete. Otherwise a limit was reached below this call, and the facts are used only in the inference of this
     * number, where the same limit applies. */
    uint64_t limited;
    struct tare_inferred_call *next; /* of the same key */
};

struct tare_infer_walk;

/* One inference, or several of one model one after another. */
struct tare_infer_root {
    tare_status (*infer_graph)(struct tare_infer_walk *walk); /* fills walk->facts; calls reach infer_shapes.c by it */
    struct tare_arena arena;                                  /* until the end of the last inference */
    struct tare_kept_value *values;
    struct tare_map calls; /* struct tare_call_key -> struct tare_inferred_call */
    int64_t nodes_left;    /* that callees may still have: a file can nest calls without end */
    int depth;
    uint64_t number;                 /* of the inference, from 1 */
    uint64_t limits;                 /* times that a callee was not inferred because of a limit */
    tare_infer_conflict_fn conflict; /* NULL: not called */
    void *conflict_arg;
};

/* One graph in one calling context. */
struct tare_infer_walk {
    struct tare_infer_root *root;
    const struct tare_graph *graph;
    const struct tare_fact *args; /* one an argument */
    struct tare_fact **facts;     /* [position][output]; NULL: not inferred (yet) */
    struct tare_arena scratch;    /* of the node that is inferred now */
};

/* The fact "nothing is known". */
static inline struct tare_fact tare_fact_unknown(void) {
    return (struct tare_fact){ .shape = { .rank = TARE_UNKNOWN_RANK } };
}
/* The fact of an edge of the walk's graph. */
static inline struct tare_fact tare_infer_fact_of(const struct tare_infer_walk *walk, struct tare_edge edge) {
    const size_t position = edge.node->position;
    if (tare_node_is_arg(edge.node)) return walk->args[position];
    if (position >= walk->graph->n_nodes || !walk->facts[position]) return tare_fact_unknown();
    return walk->facts[position][edge.index];
}
/* Infers through the functions that `node` calls; *called is false when it calls none. */
tare_status tare_infer_call(struct tare_infer_walk *walk, const struct tare_node *node, const struct tare_fact *inputs,
                            struct tare_fact *outputs, bool *called);
/* Sets the value of a fact to a constant, which lives as long as the inference. */
tare_status tare_infer_value(struct tare_infer_walk *walk, const struct tare_tensor *value, struct tare_fact *fact);
/* Adds values to the outputs, and the shapes that follow from partly known values. Shapes were inferred before. */
tare_status tare_infer_node_values(struct tare_infer_walk *walk, const struct tare_node *node,
                                   const struct tare_fact *inputs, struct tare_fact *outputs);

#endif
