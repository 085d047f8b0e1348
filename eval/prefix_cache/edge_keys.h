/* Keys of what edges compute: two edges with the same key, in the same or different models, have the same value for the
 * same feeds. Keys are hashes of ops, attributes, constants and the keys of the inputs; names do not matter. */
#ifndef TARE_EVAL_EDGE_KEYS_H
#define TARE_EVAL_EDGE_KEYS_H

#include "graph/model.h"

struct tare_edge_key {
    uint64_t words[2];
};

/* By position in the main graph. */
struct tare_edge_keys {
    struct tare_edge_key *nodes;
    bool *fed;    /* the node depends on a feed; others are constant between runs */
    bool *shared; /* another model's edge with this key has the same value */
};

/* Computes the keys of a main graph. `feeds`: the fed edges, in the same order in each model. `serial`: a different
 * number per model; it enters the keys of values that depend on state, random numbers, TF1 control flow or undefined
 * ops, so that no other model shares them. Arena memory. */
tare_status tare_edge_keys_of(struct tare_edge_keys *out, struct tare_arena *arena,
                              const struct tare_graph_model *model, const struct tare_edge *feeds, size_t n_feeds,
                              uint64_t serial) TARE_WARN_UNUSED;
/* The key of one output of a node. */
struct tare_edge_key tare_edge_key_of(const struct tare_edge_keys *keys, struct tare_edge edge);

#endif
