/* One group of requests that arrive together. Used by eval/served_batches*.c only. */
#ifndef TARE_EVAL_SERVED_BATCHES_GROUP_H
#define TARE_EVAL_SERVED_BATCHES_GROUP_H

#include "eval/served_batches.h"

/* A BatchFunction. */
struct tare_batcher {
    struct tare_node *node;
    struct tare_graph *function;
    size_t n_in; /* inputs that are batched; the others are captured */
    int64_t max_request, max_batch, max_enqueued;
    bool splits;
    const struct tare_attr *allowed; /* NULL or empty: no padding */
    struct tare_served_size *sizes;
    size_t n_sizes, sizes_capacity;
};

struct tare_served_batches {
    struct tare_arena arena;
    struct tare_signature signature; /* with outputs in the inlined graph */
    struct tare_batcher *batchers;
    struct tare_served_batcher *reports;
    size_t n_batchers, n_between; /* between: outputs of all batchers, which are fed */
};

#endif
