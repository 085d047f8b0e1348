/* What one calibration run observes: the requested floating-point tensors of a signature, and the functions that the
 * signature can reach. */
#ifndef TARE_CALIB_OBSERVED_H
#define TARE_CALIB_OBSERVED_H

#include "base/map.h"
#include "graph/graph_table.h"
#include "graph/model.h"

struct tare_observed_slot {
    const struct tare_node *node;
    size_t output;
};

struct tare_observed {
    struct tare_arena arena;
    struct tare_observed_slot *slots; /* sorted by function, node and output */
    size_t n_slots, slots_capacity;
    struct tare_graph_table by_graph;    /* -> size_t by argument, then by node: its first slot + 1; 0: it has none */
    const struct tare_graph **functions; /* sorted by name */
    size_t n_functions, functions_capacity;
    const struct tare_node *
        *choices; /* nodes whose work depends on values: If, Case, While, Switch …; sorted like slots */
    size_t n_choices, choices_capacity;
    size_t n_sides; /* of all of them together (calib/coverage.h) */
    struct tare_map visited;
    bool (*accepts)(void *arg, const struct tare_node *node, size_t output);
    void *accepts_arg;
};

/* Traverses the graph from the signature's outputs. `accepts` NULL: every floating-point tensor that is not a constant.
 * Free with tare_observed_free, also after a failure. */
tare_status tare_observed_make(struct tare_observed *out, const struct tare_signature *signature,
                               bool (*accepts)(void *arg, const struct tare_node *node, size_t output),
                               void *arg) TARE_WARN_UNUSED;
void tare_observed_free(struct tare_observed *observed);
/* The slot of an output, -1 when it is not observed. */
ptrdiff_t tare_observed_find(const struct tare_observed *observed, const struct tare_node *node, size_t output);

#endif
